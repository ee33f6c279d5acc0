"""The emulator speaks SerpBase's wire format over real HTTP."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from datetime import date, timedelta
from http.client import IncompleteRead
from typing import Any

import pytest

from collection_pipeline.sources.emulator.places import place_id_of
from collection_pipeline_tests.sources.emulator.client import DAY, Client, emulator

PATHS = {
    "search": "/google/search",
    "news": "/google/news",
    "maps_search": "/google/maps/search",
    "maps_detail": "/google/maps/detail",
}
RESULT_KEYS = {"search": "organic", "news": "news", "maps_search": "places", "maps_detail": "place"}
CREDITS = {"search": 1, "news": 1, "maps_search": 2, "maps_detail": 2}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with emulator() as found:
        yield found


@pytest.fixture(scope="module")
def keflavik(client: Client) -> str:
    feature_id: str = client.search("KEF")[0]["feature_id"]
    return feature_id


def params_of(endpoint: str, feature_id: str) -> dict[str, Any]:
    return {"feature_id": feature_id} if endpoint == "maps_detail" else {"q": "Reykjavik"}


class TestEnvelope:
    @pytest.mark.parametrize("endpoint", PATHS)
    def test_of_a_success(self, client: Client, keflavik: str, endpoint: str) -> None:
        said = client.post(PATHS[endpoint], **params_of(endpoint, keflavik))
        assert said["status"] == 0
        assert str(uuid.UUID(said["request_id"])) == said["request_id"]
        assert said["elapsed_ms"] >= 0
        assert said["credits_charged"] == CREDITS[endpoint]
        assert said["search_type"] == endpoint
        assert said[RESULT_KEYS[endpoint]]
        assert ("query" in said, "page" in said) == ((endpoint != "maps_detail"),) * 2
        assert "synthetic" in said["emulator"], "it never passes for the real service"

    @pytest.mark.parametrize("endpoint", ["search", "news", "maps_search"])
    def test_of_nothing_found_has_no_result_key(self, client: Client, endpoint: str) -> None:
        said = client.post(PATHS[endpoint], q="xyzzy", page=11)
        assert said["status"] == 0
        assert RESULT_KEYS[endpoint] not in said

    def test_of_an_error(self, client: Client) -> None:
        said = client.detail("0x1:0x2")
        assert (said["status"], said["error"], said["credits_charged"]) == (1004, "not found", 0)

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD"])
    @pytest.mark.parametrize("path", PATHS.values())
    def test_is_for_post_only(self, client: Client, method: str, path: str) -> None:
        assert client.request(method, path, headers={"X-API-Key": "k"}).http_status == 405


class TestKey:
    @pytest.mark.parametrize(
        "headers", [{}, {"X-API-Key": ""}, {"X-API-Key": "invalid-1"}, {"Authorization": "Bearer k"}]
    )
    def test_is_needed_and_may_be_refused(self, client: Client, headers: dict[str, str]) -> None:
        said = client.request("POST", PATHS["search"], b'{"q": "x"}', headers)
        assert (said.http_status, said.json()["status"], said.json()["error"]) == (200, 1001, "unauthorized")

    def test_may_be_any_other_in_any_spelling_of_the_header(self, client: Client) -> None:
        said = client.request("POST", PATHS["search"], b'{"q": "Reykjavik"}', {"x-api-key": "whatever"})
        assert said.json()["status"] == 0


class TestParameters:
    @pytest.mark.parametrize(
        ("endpoint", "body"),
        [
            ("search", b""),
            ("search", b"not json"),
            ("search", b"[]"),
            ("search", b"{}"),
            ("search", b'{"q": "   "}'),
            ("search", b'{"q": 7}'),
            ("search", b'{"q": "x", "page": 0}'),
            ("search", b'{"q": "x", "page": true}'),
            ("search", b'{"q": "x", "page": "2"}'),
            ("maps_search", b'{"q": "x", "lat": 1}'),
            ("maps_search", b'{"q": "x", "lng": 1}'),
            ("maps_search", b'{"q": "x", "lat": 91, "lng": 0}'),
            ("maps_search", b'{"q": "x", "lat": 0, "lng": "0"}'),
            ("maps_search", b'{"q": "x", "lat": 0, "lng": 0, "zoom": 22}'),
            ("maps_search", b'{"q": "x", "lat": 0, "lng": 0, "zoom": 1.5}'),
            ("maps_search", b'{"q": "x", "lat": NaN, "lng": 0}'),
            ("maps_detail", b"{}"),
            ("maps_detail", b'{"feature_id": "ChIJ7csDcMKxe0gR87JEKuY9OZs"}'),
            ("maps_detail", b'{"feature_id": "0x1"}'),
        ],
    )
    def test_that_are_wrong_are_an_invalid_request(self, client: Client, endpoint: str, body: bytes) -> None:
        said = client.request("POST", PATHS[endpoint], body, {"X-API-Key": "k"}).json()
        assert (said["status"], said["credits_charged"]) == (1000, 0)
        assert said["error"].startswith("invalid request: ")

    def test_that_are_unknown_are_ignored(self, client: Client) -> None:
        assert client.post(PATHS["search"], q="Reykjavik", num=100)["status"] == 0


class TestMapsSearch:
    def test_pages_do_not_overlap_and_end(self, client: Client) -> None:
        pages = [client.search("airports in Germany", page=page) for page in range(1, 8)]
        sizes = [len(page) for page in pages]
        assert sizes[:4] == [20] * 4
        assert sizes[-1] == 0
        ids = [place["feature_id"] for page in pages for place in page]
        assert len(ids) == len(set(ids))

    def test_has_a_last_page(self) -> None:
        with emulator(last_page=2, rows_per_page=5) as client:
            assert [len(client.search("Germany", page=page)) for page in (1, 2, 3)] == [5, 5, 0]

    def test_places_have_both_ids_and_their_real_position(self, client: Client) -> None:
        [place] = client.search("KEF")
        assert place["name"] == place["title"] == "Keflavik International Airport"
        assert place["place_id"] == place_id_of(place["feature_id"])
        assert (place["latitude"], place["longitude"]) == (63.985, -22.6056)
        assert place["types"] == ["International airport", "Airport"]
        assert 0 < place["rating"] <= 5
        assert isinstance(place["review_count"], int)
        assert not {"phone", "website", "hours"} & place.keys(), "what is not known is absent"

    def test_name_and_city_come_before_region_and_country(self, client: Client) -> None:
        assert client.search("Tokyo")[0]["name"] == "Tokyo International Airport"

    def test_with_coordinates_the_nearest_come_first(self, client: Client) -> None:
        found = client.search("airport", lat=64.13, lng=-21.94, zoom=6)
        assert [place["name"] for place in found[:2]] == ["Reykjavik Airport", "Keflavik International Airport"]

    def test_zoom_limits_how_far_it_looks(self, client: Client) -> None:
        near, far = (
            sum(len(client.search("airport", lat=50, lng=8, zoom=z, page=p)) for p in range(1, 8)) for z in (12, 7)
        )
        assert near == 20, "the nearest page at least"
        assert far > near

    def test_country_decides_where_nothing_else_does(self, client: Client) -> None:
        assert all("Iceland" in place["address"] for place in client.search("airports", gl="IS"))


class TestMapsDetail:
    def test_is_richer_than_the_search_and_agrees_with_it(self, client: Client) -> None:
        [place] = client.search("KEF")
        detail = client.detail(place["feature_id"])["place"]
        assert place.items() <= detail.items()
        facts = {item["name"]: item["value"] for item in detail["attributes"]}
        assert (facts["IATA code"], facts["ICAO code"], facts["Elevation (ft)"]) == ("KEF", "BIKF", "171")
        assert facts["Time zone"] == "Atlantic/Reykjavik"

    def test_knows_the_id_in_upper_case_too(self, client: Client, keflavik: str) -> None:
        assert client.detail(keflavik.upper().replace("X", "x"))["place"]["feature_id"] == keflavik


def test_news_and_organic_results_say_that_they_are_synthetic(client: Client) -> None:
    for path, key in ((PATHS["news"], "news"), (PATHS["search"], "organic")):
        for item in client.post(path, q="Reykjavik")[key]:
            assert item["title"].startswith("[Synthetic] ")
            assert "ynthetic" in item["snippet"]
            assert re.match(r"https://[^/]+\.example/|https://news\.example/", item["link"])


class TestDays:
    @staticmethod
    def everything(seed: int = 0, day: date = DAY) -> str:
        with emulator(seed=seed, day=day) as client:
            places = [place for page in (1, 2, 3) for place in client.search("airports in Iceland", page=page)]
            return json.dumps([places, client.post(PATHS["news"], q="Reykjavik").get("news")])

    def test_one_day_is_always_the_same(self) -> None:
        assert self.everything() == self.everything()

    def test_another_seed_is_another_world(self) -> None:
        assert self.everything() != self.everything(seed=1)

    def test_days_differ_a_little(self) -> None:
        seen = []
        for day in (DAY, DAY + timedelta(days=1)):
            with emulator(day=day) as client:
                pages = [client.search("airports in Germany", page=page) for page in range(1, 6)]
                seen.append({place["feature_id"]: place for page in pages for place in page})
        old, new = seen
        assert old.keys() - new.keys(), "gone"
        assert new.keys() - old.keys(), "new"
        both = [feature_id for feature_id in old if feature_id in new]
        assert len(both) > 0.9 * len(old)
        assert both != [feature_id for feature_id in new if feature_id in old], "moved in rank"
        assert all(abs(old[f]["rating"] - new[f]["rating"]) < 0.2 for f in both)
        assert all(old[f]["review_count"] <= new[f]["review_count"] for f in both)

    def test_what_search_does_not_list_today_detail_still_knows(self) -> None:
        with emulator(unlisted_share=0) as client:
            everywhere = [p["feature_id"] for page in range(1, 6) for p in client.search("Germany", page=page)]
        with emulator(unlisted_share=0.5) as client:
            listed = [p["feature_id"] for page in range(1, 6) for p in client.search("Germany", page=page)]
            unlisted = next(feature_id for feature_id in everywhere if feature_id not in listed)
            assert client.detail(unlisted)["status"] == 0


class TestAccount:
    def test_charges_are_counted_by_feature_id(self, keflavik: str) -> None:
        with emulator() as client:
            for _ in range(2):
                client.detail(keflavik)
            client.detail("0x1:0x2")
            client.search("xyzzy")
            state = client.state()
        assert state["feature_id_charges"] == {keflavik: 2}
        assert sorted(state["charges"].values()) == [1, 2]
        assert state["credits_charged"] == 6
        assert state["requests"] == {"maps_detail": 3, "maps_search": 1}
        assert state["credits_left"] is None

    def test_a_balance_ends(self, keflavik: str) -> None:
        with emulator(credits=3) as client:
            assert [client.detail(keflavik)["status"] for _ in range(2)] == [0, 1020]
            assert client.post(PATHS["news"], q="x")["status"] == 0
            assert client.state()["credits_left"] == 0

    @pytest.mark.parametrize(("charge", "charged"), [(True, 2), (False, 0)])
    def test_what_nothing_and_not_found_cost_can_be_chosen(self, charge: bool, charged: int) -> None:
        with emulator(charge_empty=charge, charge_not_found=charge) as client:
            assert client.post(PATHS["maps_search"], q="xyzzy")["credits_charged"] == charged
            assert client.detail("0x1:0x2")["credits_charged"] == charged


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "status"),
        [
            ("rate_limit", 1029),
            ("upstream_error", 1502),
            ("upstream_error@status=1503", 1503),
            ("timeout@seconds=0", 1504),
            ("unauthorized", 1001),
            ("out_of_credits", 1020),
            ("not_found", 1004),
        ],
    )
    def test_that_are_business_errors_come_over_http_200_and_are_free(
        self, keflavik: str, fault: str, status: int
    ) -> None:
        with emulator(f"maps_detail={fault}") as client:
            said = client.detail(keflavik)
            assert (said["status"], said["credits_charged"]) == (status, 0)
            assert client.state()["credits_charged"] == 0

    def test_retry_after_is_sent_if_asked_for(self, keflavik: str) -> None:
        with emulator("*=rate_limit@retry_after=7") as client:
            body = json.dumps({"feature_id": keflavik}).encode()
            assert client.request("POST", PATHS["maps_detail"], body, {"X-API-Key": "k"}).headers["retry-after"] == "7"

    def test_an_empty_result_is_a_success_without_result_key(self) -> None:
        with emulator("maps_search=empty_result") as client:
            said = client.post(PATHS["maps_search"], q="Reykjavik")
            assert (said["status"], "places" in said) == (0, False)

    def test_a_malformed_body_is_no_json_and_charged(self, keflavik: str) -> None:
        with emulator("maps_detail=malformed_body") as client:
            with pytest.raises(json.JSONDecodeError):
                client.detail(keflavik)
            assert client.state()["feature_id_charges"] == {keflavik: 1}

    @pytest.mark.parametrize(("charged", "charges"), [("no", 0), ("yes", 1)])
    def test_a_cut_connection_may_be_charged(self, keflavik: str, charged: str, charges: int) -> None:
        with emulator(f"maps_detail=cut_connection@charged={charged}") as client:
            with pytest.raises(IncompleteRead):
                client.detail(keflavik)
            assert client.state()["feature_id_charges"].get(keflavik, 0) == charges

    def test_a_slow_answer_is_a_good_one(self, keflavik: str) -> None:
        with emulator("maps_detail=slow@seconds=0.05") as client:
            said = client.detail(keflavik)
            assert said["status"] == 0
            assert said["elapsed_ms"] >= 50

    def test_can_be_changed_while_it_runs(self, keflavik: str) -> None:
        with emulator("maps_detail=not_found") as client:
            assert client.detail(keflavik)["status"] == 1004
            assert client.request("GET", "/emulator/faults").body == b"maps_detail=not_found\n"
            assert client.request("PUT", "/emulator/faults", b"").http_status == 200
            assert client.detail(keflavik)["status"] == 0
            refused = client.request("PUT", "/emulator/faults", b"maps_detail=explode")
            assert (refused.http_status, b"known are" in refused.body) == (400, True)
            assert client.state()["faults"] == {"maps_detail=not_found": 1}

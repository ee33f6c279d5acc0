"""The emulator's places are real airports, and search finds them by words."""

from __future__ import annotations

import re

import airportsdata
import pytest

from collection_pipeline.sources.emulator.places import all_places, place_id_of


def names(query: str, country: str | None = "US") -> set[str]:
    return {place.name for place in all_places().matching(query, country)}


@pytest.mark.parametrize(
    ("feature_id", "place_id"),
    [("0x487bb1c27003cbed:0x9b393de62a44b2f3", "ChIJ7csDcMKxe0gR87JEKuY9OZs")],
)
def test_place_id_is_the_other_form_of_feature_id(feature_id: str, place_id: str) -> None:
    assert place_id_of(feature_id) == place_id


def test_ids_are_unique_and_of_the_documented_shape() -> None:
    places = all_places().by_feature_id
    assert len(places) == len(airportsdata.load("IATA"))
    assert all(re.fullmatch(r"0x[1-9a-f][0-9a-f]{0,15}:0x[1-9a-f][0-9a-f]{0,15}", feature_id) for feature_id in places)
    assert len({place.place_id for place in places.values()}) == len(places)


def test_facts_are_those_of_airportsdata() -> None:
    [keflavik] = all_places().matching("KEF", "US")
    real = airportsdata.load("IATA")["KEF"]
    assert (keflavik.name, keflavik.icao, keflavik.timezone) == (real["name"], real["icao"], real["tz"])
    assert (keflavik.latitude, keflavik.longitude, keflavik.elevation_ft) == (
        real["lat"],
        real["lon"],
        real["elevation"],
    )
    assert keflavik.address == "Reykjavik, Southern Peninsula, Iceland"


@pytest.mark.parametrize(
    ("query", "among"),
    [
        ("airports in Iceland", "Keflavik International Airport"),
        ("AIRPORTS  near ísafjördur", "Ísafjörður Airport"),
        ("isafjordur", "Ísafjörður Airport"),
        ("Tokyo airport", "Tokyo International Airport"),
        ("bikf", "Keflavik International Airport"),
        ("Chicago, Illinois", "Chicago O'Hare International Airport"),
        ("United Kingdom", "London Heathrow Airport"),
        ('"Keflavik International Airport"', "Keflavik International Airport"),
    ],
)
def test_words_are_found_in_name_city_subdivision_country_and_codes(query: str, among: str) -> None:
    assert among in names(query)


def test_every_word_must_be_found() -> None:
    assert not names("coffee in Reykjavik")
    assert names("Reykjavik") > names("Reykjavik international")


def test_airports_without_a_place_are_those_of_the_country() -> None:
    assert names("airports", "IS") == names("airports in Iceland")
    assert len(names("airports", None)) > 7000


def test_distance() -> None:
    [keflavik], [heathrow] = all_places().matching("KEF", None), all_places().matching("LHR", None)
    assert keflavik.distance_km(heathrow.latitude, heathrow.longitude) == pytest.approx(1895, rel=0.01)
    assert keflavik.distance_km(keflavik.latitude, keflavik.longitude) == 0

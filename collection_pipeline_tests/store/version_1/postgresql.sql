CREATE TABLE public.alerts (
    episode_id bigint NOT NULL,
    key text NOT NULL,
    text text NOT NULL,
    opened_run text NOT NULL,
    last_run text NOT NULL,
    last_moment timestamp with time zone NOT NULL,
    last_suffix integer NOT NULL,
    run_count integer NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    healed_at timestamp with time zone,
    healed_run text,
    delivered boolean DEFAULT false NOT NULL,
    delivery_error text,
    tried_at timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.alerts_episode_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.alerts_episode_id_seq OWNED BY public.alerts.episode_id;
CREATE TABLE public.artifact_inputs (
    artifact_id bigint NOT NULL,
    upstream text NOT NULL,
    input_artifact_id bigint,
    policy text NOT NULL,
    on_rerun text NOT NULL
);
CREATE TABLE public.artifacts (
    artifact_id bigint NOT NULL,
    run_id text NOT NULL,
    job_id text NOT NULL,
    version integer NOT NULL,
    usable boolean NOT NULL,
    is_current boolean NOT NULL,
    as_of timestamp with time zone NOT NULL,
    degraded boolean NOT NULL,
    row_count bigint NOT NULL,
    content_hash text NOT NULL,
    dataset text NOT NULL,
    source text,
    published_at timestamp with time zone NOT NULL,
    retracted_at timestamp with time zone,
    retract_reason text,
    attempt integer NOT NULL,
    dagster_run_id text NOT NULL,
    generation bigint NOT NULL,
    oldest_generation bigint NOT NULL,
    credits_charged bigint NOT NULL,
    credits_reused bigint NOT NULL,
    checks json NOT NULL,
    metadata json NOT NULL,
    files json NOT NULL,
    moment timestamp with time zone NOT NULL,
    suffix integer NOT NULL
);
CREATE SEQUENCE public.artifacts_artifact_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.artifacts_artifact_id_seq OWNED BY public.artifacts.artifact_id;
CREATE TABLE public.datasets (
    dataset text NOT NULL,
    kinds json NOT NULL,
    shown json NOT NULL
);
CREATE TABLE public.graphs (
    graph_hash text NOT NULL,
    graph text NOT NULL
);
CREATE TABLE public.jobs (
    run_id text NOT NULL,
    job_id text NOT NULL,
    deps text[] NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    reason text,
    error_kind text,
    outcome text DEFAULT 'pending'::text NOT NULL,
    attempted json,
    attempt bigint DEFAULT '0'::bigint NOT NULL,
    dagster_run_id text,
    host text,
    pid bigint,
    process_started_at double precision,
    start_failures bigint DEFAULT '0'::bigint NOT NULL,
    generation bigint DEFAULT '0'::bigint NOT NULL,
    oldest_generation bigint DEFAULT '0'::bigint NOT NULL,
    credits_charged bigint DEFAULT '0'::bigint NOT NULL,
    credits_reused bigint DEFAULT '0'::bigint NOT NULL,
    credits_possibly_billed bigint DEFAULT '0'::bigint NOT NULL,
    credits_reserved bigint DEFAULT '0'::bigint NOT NULL,
    removed boolean DEFAULT false NOT NULL
);
CREATE TABLE public.removals (
    run_id text NOT NULL,
    files json NOT NULL,
    pruned_at timestamp with time zone NOT NULL
);
CREATE TABLE public.requests (
    id bigint NOT NULL,
    run_id text NOT NULL,
    job_id text NOT NULL,
    attempt integer NOT NULL,
    generation bigint NOT NULL,
    source text NOT NULL,
    endpoint text NOT NULL,
    fingerprint text NOT NULL,
    params text NOT NULL,
    try_number integer NOT NULL,
    kind text NOT NULL,
    request_id text,
    status bigint,
    http_status integer,
    credits_charged bigint NOT NULL,
    possibly_billed boolean NOT NULL,
    started_at timestamp with time zone NOT NULL,
    elapsed_ms bigint NOT NULL,
    error text,
    response bytea
);
CREATE SEQUENCE public.requests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.requests_id_seq OWNED BY public.requests.id;
CREATE TABLE public.runs (
    run_id text NOT NULL,
    moment timestamp with time zone NOT NULL,
    suffix integer NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone,
    graph_hash text NOT NULL,
    revision bigint DEFAULT '0'::bigint NOT NULL
);
CREATE TABLE public.search_places_rows (
    run_id text NOT NULL,
    version integer NOT NULL,
    row_no integer NOT NULL,
    place_id text,
    name text,
    visits bigint,
    score double precision,
    is_open boolean,
    seen_at timestamp with time zone,
    extra json,
    request_id text
);
CREATE VIEW public.search_places AS
 SELECT search_places_rows.run_id,
    search_places_rows.version,
    search_places_rows.place_id,
    search_places_rows.name,
    search_places_rows.visits,
    search_places_rows.score,
    search_places_rows.is_open,
    search_places_rows.seen_at,
    search_places_rows.extra,
    search_places_rows.request_id
   FROM (public.search_places_rows
     JOIN public.artifacts ON (((artifacts.dataset = 'search_places'::text) AND (artifacts.run_id = search_places_rows.run_id) AND (artifacts.version = search_places_rows.version) AND artifacts.is_current)));
CREATE TABLE public.store_schema (
    version integer NOT NULL
);
CREATE SEQUENCE public.store_schema_version_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.store_schema_version_seq OWNED BY public.store_schema.version;
CREATE TABLE public.unmet_fallbacks (
    run_id text NOT NULL,
    upstream text NOT NULL,
    oldest_as_of timestamp with time zone NOT NULL,
    moment timestamp with time zone NOT NULL,
    suffix integer NOT NULL
);
ALTER TABLE ONLY public.alerts ALTER COLUMN episode_id SET DEFAULT nextval('public.alerts_episode_id_seq'::regclass);
ALTER TABLE ONLY public.artifacts ALTER COLUMN artifact_id SET DEFAULT nextval('public.artifacts_artifact_id_seq'::regclass);
ALTER TABLE ONLY public.requests ALTER COLUMN id SET DEFAULT nextval('public.requests_id_seq'::regclass);
ALTER TABLE ONLY public.store_schema ALTER COLUMN version SET DEFAULT nextval('public.store_schema_version_seq'::regclass);
INSERT INTO public.artifacts VALUES (1, '2026-11-28', 'search', 1, true, true, '2026-11-27 21:45:00+05:45', false, 2, '2bc692edee2d0496f8c09664eb85b1e9d91c9b60bfae7323c046ab6e5345f890', 'search_places', 'emulator', '2026-11-29 03:45:00+05:45', NULL, NULL, 1, 'dagster-1', 0, 0, 2, 1, '[{"name":"rows","passed":true,"severity":"hard","description":"there are rows","metadata":{}}]', '{}', '[{"name":"v1.html"}]', '2026-11-27 21:45:00+05:45', 1);
INSERT INTO public.datasets VALUES ('search_places', '{"place_id":"text","name":"text","visits":"integer","score":"number","is_open":"boolean","seen_at":"instant","extra":"json","request_id":"text"}', '["place_id","name","visits","score","is_open","seen_at","extra","request_id"]');
INSERT INTO public.graphs VALUES ('e50bea0297f51336e4e36f7f28298c9c76e2d07ff24d5829b3f16ae5ea2f3232', '{"format":1,"jobs":[{"deadline":null,"edges":[{"on_rerun":"pin","policy":"optional","upstream":"report","why":"keeps what it has"}],"job_id":"archive","shelf_life":null},{"deadline":null,"edges":[{"on_rerun":"follow","policy":"hard","upstream":"search","why":"details of what was found"}],"job_id":"details","shelf_life":{"fail_s":259200.0,"warn_s":null}},{"deadline":null,"edges":[{"on_rerun":"follow","policy":"degrade","upstream":"details","why":"better old than none"}],"job_id":"report","shelf_life":null},{"deadline":null,"edges":[],"job_id":"search","shelf_life":null}]}');
INSERT INTO public.jobs VALUES ('2026-11-28', 'report', '{details}', 'pending', NULL, NULL, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, false);
INSERT INTO public.jobs VALUES ('2026-11-28', 'archive', '{report}', 'pending', NULL, NULL, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, false);
INSERT INTO public.jobs VALUES ('2026-11-29', 'search', '{}', 'pending', NULL, NULL, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, false);
INSERT INTO public.jobs VALUES ('2026-11-29', 'details', '{search}', 'pending', NULL, NULL, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, false);
INSERT INTO public.jobs VALUES ('2026-11-29', 'report', '{details}', 'pending', NULL, NULL, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, false);
INSERT INTO public.jobs VALUES ('2026-11-29', 'archive', '{report}', 'pending', NULL, NULL, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, false);
INSERT INTO public.jobs VALUES ('2026-11-28', 'search', '{}', 'done', '2026-11-29 03:45:00+05:45', '2026-11-29 03:45:00+05:45', NULL, NULL, 'done', '{}', 1, 'dagster-1', 'host-a', 1, 1000.25, 0, 1, 1, 2, 0, 0, 0, false);
INSERT INTO public.jobs VALUES ('2026-11-28', 'details', '{search}', 'failed', '2026-11-29 03:45:00+05:45', '2026-11-29 03:45:00+05:45', 'no answer', 'transient', 'failed', '{"search":{"job_id":"search","run_id":"2026-11-28","version":1,"as_of":"2026-11-27T16:00:00+00:00","content_hash":"2bc692edee2d0496f8c09664eb85b1e9d91c9b60bfae7323c046ab6e5345f890","degraded":false}}', 1, 'dagster-2', 'host-a', 1, 1000.25, 0, 0, 0, 0, 0, 0, 0, false);
INSERT INTO public.requests VALUES (1, '2026-11-28', 'search', 1, 0, 'emulator', 'maps_search', '20bf72da22f9cece54befc0fc39041c84b73e548d86e4d5cfb0a47ecfcf6d653', '{"page": 1, "q": "a"}', 1, 'ok', 'req-1', 0, 200, 2, false, '2026-11-29 03:45:00+05:45', 1500, NULL, '\x7b22706c61636573223a5b5d7d');
INSERT INTO public.runs VALUES ('2026-11-29', '2026-11-28 21:45:00+05:45', 1, '2026-11-29 03:45:00+05:45', NULL, 'e50bea0297f51336e4e36f7f28298c9c76e2d07ff24d5829b3f16ae5ea2f3232', 0);
INSERT INTO public.runs VALUES ('2026-11-28', '2026-11-27 21:45:00+05:45', 1, '2026-11-29 03:45:00+05:45', NULL, 'e50bea0297f51336e4e36f7f28298c9c76e2d07ff24d5829b3f16ae5ea2f3232', 4);
INSERT INTO public.search_places_rows VALUES ('2026-11-28', 1, 0, '0x0', 'Reykjavík', 0, 4.5, true, '2026-11-29 05:45:00+05:45', '{"a":1}', 'r-1');
INSERT INTO public.search_places_rows VALUES ('2026-11-28', 1, 1, '0x1', '東京', 1, 4.5, true, '2026-11-29 05:45:00+05:45', '{"a":1}', 'r-1');
INSERT INTO public.store_schema VALUES (1);
SELECT pg_catalog.setval('public.alerts_episode_id_seq', 1, false);
SELECT pg_catalog.setval('public.artifacts_artifact_id_seq', 1, true);
SELECT pg_catalog.setval('public.requests_id_seq', 1, true);
SELECT pg_catalog.setval('public.store_schema_version_seq', 1, false);
ALTER TABLE ONLY public.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (episode_id);
ALTER TABLE ONLY public.artifact_inputs
    ADD CONSTRAINT artifact_inputs_pkey PRIMARY KEY (artifact_id, upstream);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT artifacts_pkey PRIMARY KEY (artifact_id);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT artifacts_run_id_job_id_version_key UNIQUE (run_id, job_id, version);
ALTER TABLE ONLY public.datasets
    ADD CONSTRAINT datasets_pkey PRIMARY KEY (dataset);
ALTER TABLE ONLY public.graphs
    ADD CONSTRAINT graphs_pkey PRIMARY KEY (graph_hash);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (run_id, job_id);
ALTER TABLE ONLY public.removals
    ADD CONSTRAINT removals_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.search_places_rows
    ADD CONSTRAINT search_places_rows_pkey PRIMARY KEY (run_id, version, row_no);
ALTER TABLE ONLY public.store_schema
    ADD CONSTRAINT store_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.unmet_fallbacks
    ADD CONSTRAINT unmet_fallbacks_pkey PRIMARY KEY (run_id, upstream);
CREATE UNIQUE INDEX ix_alerts_open ON public.alerts USING btree (key) WHERE (healed_at IS NULL);
CREATE INDEX ix_alerts_undelivered ON public.alerts USING btree (tried_at) WHERE (NOT delivered);
CREATE INDEX ix_artifact_inputs_input_artifact_id ON public.artifact_inputs USING btree (input_artifact_id);
CREATE UNIQUE INDEX ix_artifacts_current ON public.artifacts USING btree (run_id, job_id) WHERE is_current;
CREATE INDEX ix_artifacts_fallback ON public.artifacts USING btree (job_id, as_of, moment, suffix) WHERE is_current;
CREATE INDEX ix_artifacts_order ON public.artifacts USING btree (job_id, moment, suffix) WHERE is_current;
CREATE INDEX ix_jobs_running ON public.jobs USING btree (run_id, job_id) WHERE (outcome = 'running'::text);
CREATE INDEX ix_requests_lookup ON public.requests USING btree (run_id, job_id, source, kind, fingerprint, generation);
CREATE INDEX ix_requests_request_id ON public.requests USING btree (request_id);
CREATE INDEX ix_runs_open ON public.runs USING btree (moment, suffix) WHERE (settled_at IS NULL);
CREATE INDEX ix_runs_order ON public.runs USING btree (moment, suffix);
CREATE INDEX ix_unmet_fallbacks_upstream ON public.unmet_fallbacks USING btree (upstream, moment);
ALTER TABLE ONLY public.artifact_inputs
    ADD CONSTRAINT artifact_inputs_artifact_id_fkey FOREIGN KEY (artifact_id) REFERENCES public.artifacts(artifact_id);
ALTER TABLE ONLY public.artifact_inputs
    ADD CONSTRAINT artifact_inputs_input_artifact_id_fkey FOREIGN KEY (input_artifact_id) REFERENCES public.artifacts(artifact_id);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT artifacts_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(run_id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(run_id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_graph_hash_fkey FOREIGN KEY (graph_hash) REFERENCES public.graphs(graph_hash);
ALTER TABLE ONLY public.unmet_fallbacks
    ADD CONSTRAINT unmet_fallbacks_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(run_id);

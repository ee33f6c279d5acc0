BEGIN TRANSACTION;
CREATE TABLE alerts (
	episode_id INTEGER NOT NULL,
	"key" TEXT NOT NULL,
	text TEXT NOT NULL,
	opened_run TEXT NOT NULL,
	last_run TEXT NOT NULL,
	last_moment TEXT NOT NULL,
	last_suffix INTEGER NOT NULL,
	run_count INTEGER NOT NULL,
	opened_at TEXT NOT NULL,
	healed_at TEXT,
	healed_run TEXT,
	delivered BOOLEAN DEFAULT 0 NOT NULL,
	delivery_error TEXT,
	tried_at TEXT NOT NULL,
	PRIMARY KEY (episode_id)
);
CREATE TABLE artifact_inputs (
	artifact_id INTEGER NOT NULL,
	upstream TEXT NOT NULL,
	input_artifact_id INTEGER,
	policy TEXT NOT NULL,
	on_rerun TEXT NOT NULL,
	PRIMARY KEY (artifact_id, upstream),
	FOREIGN KEY(artifact_id) REFERENCES artifacts (artifact_id),
	FOREIGN KEY(input_artifact_id) REFERENCES artifacts (artifact_id)
);
CREATE TABLE artifacts (
	artifact_id INTEGER NOT NULL,
	run_id TEXT NOT NULL,
	job_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	usable BOOLEAN NOT NULL,
	is_current BOOLEAN NOT NULL,
	as_of TEXT NOT NULL,
	degraded BOOLEAN NOT NULL,
	row_count BIGINT NOT NULL,
	content_hash TEXT NOT NULL,
	dataset TEXT NOT NULL,
	source TEXT,
	published_at TEXT NOT NULL,
	retracted_at TEXT,
	retract_reason TEXT,
	attempt INTEGER NOT NULL,
	dagster_run_id TEXT NOT NULL,
	generation BIGINT NOT NULL,
	oldest_generation BIGINT NOT NULL,
	credits_charged BIGINT NOT NULL,
	credits_reused BIGINT NOT NULL,
	checks JSON NOT NULL,
	metadata JSON NOT NULL,
	files JSON NOT NULL,
	moment TEXT NOT NULL,
	suffix INTEGER NOT NULL,
	PRIMARY KEY (artifact_id),
	UNIQUE (run_id, job_id, version),
	FOREIGN KEY(run_id) REFERENCES runs (run_id)
);
INSERT INTO "artifacts" VALUES(1,'2026-11-28','search',1,1,1,'2026-11-27 16:00:00.000000Z',0,2,'2bc692edee2d0496f8c09664eb85b1e9d91c9b60bfae7323c046ab6e5345f890','search_places','emulator','2026-11-28 22:00:00.000000Z',NULL,NULL,1,'dagster-1',0,0,2,1,'[{"name":"rows","passed":true,"severity":"hard","description":"there are rows","metadata":{}}]','{}','[{"name":"v1.html"}]','2026-11-27 16:00:00.000000Z',1);
CREATE TABLE datasets (
	dataset TEXT NOT NULL,
	kinds JSON NOT NULL,
	shown JSON NOT NULL,
	PRIMARY KEY (dataset)
);
INSERT INTO "datasets" VALUES('search_places','{"place_id":"text","name":"text","visits":"integer","score":"number","is_open":"boolean","seen_at":"instant","extra":"json","request_id":"text"}','["place_id","name","visits","score","is_open","seen_at","extra","request_id"]');
CREATE TABLE graphs (
	graph_hash TEXT NOT NULL,
	graph TEXT NOT NULL,
	PRIMARY KEY (graph_hash)
);
INSERT INTO "graphs" VALUES('e50bea0297f51336e4e36f7f28298c9c76e2d07ff24d5829b3f16ae5ea2f3232','{"format":1,"jobs":[{"deadline":null,"edges":[{"on_rerun":"pin","policy":"optional","upstream":"report","why":"keeps what it has"}],"job_id":"archive","shelf_life":null},{"deadline":null,"edges":[{"on_rerun":"follow","policy":"hard","upstream":"search","why":"details of what was found"}],"job_id":"details","shelf_life":{"fail_s":259200.0,"warn_s":null}},{"deadline":null,"edges":[{"on_rerun":"follow","policy":"degrade","upstream":"details","why":"better old than none"}],"job_id":"report","shelf_life":null},{"deadline":null,"edges":[],"job_id":"search","shelf_life":null}]}');
CREATE TABLE jobs (
	run_id TEXT NOT NULL,
	job_id TEXT NOT NULL,
	deps JSON NOT NULL,
	status TEXT DEFAULT 'pending' NOT NULL,
	started_at TEXT,
	finished_at TEXT,
	reason TEXT,
	error_kind TEXT,
	outcome TEXT DEFAULT 'pending' NOT NULL,
	attempted JSON,
	attempt BIGINT DEFAULT '0' NOT NULL,
	dagster_run_id TEXT,
	host TEXT,
	pid BIGINT,
	process_started_at DOUBLE,
	start_failures BIGINT DEFAULT '0' NOT NULL,
	generation BIGINT DEFAULT '0' NOT NULL,
	oldest_generation BIGINT DEFAULT '0' NOT NULL,
	credits_charged BIGINT DEFAULT '0' NOT NULL,
	credits_reused BIGINT DEFAULT '0' NOT NULL,
	credits_possibly_billed BIGINT DEFAULT '0' NOT NULL,
	credits_reserved BIGINT DEFAULT '0' NOT NULL,
	removed BOOLEAN DEFAULT 0 NOT NULL,
	PRIMARY KEY (run_id, job_id),
	FOREIGN KEY(run_id) REFERENCES runs (run_id)
);
INSERT INTO "jobs" VALUES('2026-11-28','search','[]','done','2026-11-28 22:00:00.000000Z','2026-11-28 22:00:00.000000Z',NULL,NULL,'done','{}',1,'dagster-1','host-a',1,1000.25,0,1,1,2,0,0,0,0);
INSERT INTO "jobs" VALUES('2026-11-28','details','["search"]','failed','2026-11-28 22:00:00.000000Z','2026-11-28 22:00:00.000000Z','no answer','transient','failed','{"search":{"job_id":"search","run_id":"2026-11-28","version":1,"as_of":"2026-11-27T16:00:00+00:00","content_hash":"2bc692edee2d0496f8c09664eb85b1e9d91c9b60bfae7323c046ab6e5345f890","degraded":false}}',1,'dagster-2','host-a',1,1000.25,0,0,0,0,0,0,0,0);
INSERT INTO "jobs" VALUES('2026-11-28','report','["details"]','pending',NULL,NULL,NULL,NULL,'pending',NULL,0,NULL,NULL,NULL,NULL,0,0,0,0,0,0,0,0);
INSERT INTO "jobs" VALUES('2026-11-28','archive','["report"]','pending',NULL,NULL,NULL,NULL,'pending',NULL,0,NULL,NULL,NULL,NULL,0,0,0,0,0,0,0,0);
INSERT INTO "jobs" VALUES('2026-11-29','search','[]','pending',NULL,NULL,NULL,NULL,'pending',NULL,0,NULL,NULL,NULL,NULL,0,0,0,0,0,0,0,0);
INSERT INTO "jobs" VALUES('2026-11-29','details','["search"]','pending',NULL,NULL,NULL,NULL,'pending',NULL,0,NULL,NULL,NULL,NULL,0,0,0,0,0,0,0,0);
INSERT INTO "jobs" VALUES('2026-11-29','report','["details"]','pending',NULL,NULL,NULL,NULL,'pending',NULL,0,NULL,NULL,NULL,NULL,0,0,0,0,0,0,0,0);
INSERT INTO "jobs" VALUES('2026-11-29','archive','["report"]','pending',NULL,NULL,NULL,NULL,'pending',NULL,0,NULL,NULL,NULL,NULL,0,0,0,0,0,0,0,0);
CREATE TABLE removals (
	run_id TEXT NOT NULL,
	files JSON NOT NULL,
	pruned_at TEXT NOT NULL,
	PRIMARY KEY (run_id)
);
CREATE TABLE requests (
	id INTEGER NOT NULL,
	run_id TEXT NOT NULL,
	job_id TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	generation BIGINT NOT NULL,
	source TEXT NOT NULL,
	endpoint TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	params TEXT NOT NULL,
	try_number INTEGER NOT NULL,
	kind TEXT NOT NULL,
	request_id TEXT,
	status BIGINT,
	http_status INTEGER,
	credits_charged BIGINT NOT NULL,
	possibly_billed BOOLEAN NOT NULL,
	started_at TEXT NOT NULL,
	elapsed_ms BIGINT NOT NULL,
	error TEXT,
	response BLOB,
	PRIMARY KEY (id)
);
INSERT INTO "requests" VALUES(1,'2026-11-28','search',1,0,'emulator','maps_search','20bf72da22f9cece54befc0fc39041c84b73e548d86e4d5cfb0a47ecfcf6d653','{"page": 1, "q": "a"}',1,'ok','req-1',0,200,2,0,'2026-11-28 22:00:00.000000Z',1500,NULL,X'7B22706C61636573223A5B5D7D');
CREATE TABLE runs (
	run_id TEXT NOT NULL,
	moment TEXT NOT NULL,
	suffix INTEGER NOT NULL,
	opened_at TEXT NOT NULL,
	settled_at TEXT,
	graph_hash TEXT NOT NULL,
	revision BIGINT DEFAULT '0' NOT NULL,
	PRIMARY KEY (run_id),
	FOREIGN KEY(graph_hash) REFERENCES graphs (graph_hash)
);
INSERT INTO "runs" VALUES('2026-11-28','2026-11-27 16:00:00.000000Z',1,'2026-11-28 22:00:00.000000Z',NULL,'e50bea0297f51336e4e36f7f28298c9c76e2d07ff24d5829b3f16ae5ea2f3232',4);
INSERT INTO "runs" VALUES('2026-11-29','2026-11-28 16:00:00.000000Z',1,'2026-11-28 22:00:00.000000Z',NULL,'e50bea0297f51336e4e36f7f28298c9c76e2d07ff24d5829b3f16ae5ea2f3232',0);
CREATE TABLE "search_places_rows" (run_id text NOT NULL, version integer NOT NULL, row_no integer NOT NULL, "place_id" TEXT, "name" TEXT, "visits" INTEGER, "score" REAL, "is_open" BOOLEAN, "seen_at" TEXT, "extra" TEXT, "request_id" TEXT, PRIMARY KEY (run_id, version, row_no));
INSERT INTO "search_places_rows" VALUES('2026-11-28',1,0,'0x0','Reykjavík',0,4.5,1,'2026-11-29 00:00:00.000000Z','{"a":1}','r-1');
INSERT INTO "search_places_rows" VALUES('2026-11-28',1,1,'0x1','東京',1,4.5,1,'2026-11-29 00:00:00.000000Z','{"a":1}','r-1');
CREATE TABLE store_schema (
	version INTEGER NOT NULL,
	PRIMARY KEY (version)
);
INSERT INTO "store_schema" VALUES(1);
CREATE TABLE unmet_fallbacks (
	run_id TEXT NOT NULL,
	upstream TEXT NOT NULL,
	oldest_as_of TEXT NOT NULL,
	moment TEXT NOT NULL,
	suffix INTEGER NOT NULL,
	PRIMARY KEY (run_id, upstream),
	FOREIGN KEY(run_id) REFERENCES runs (run_id)
);
CREATE INDEX ix_requests_request_id ON requests (request_id);
CREATE INDEX ix_requests_lookup ON requests (run_id, job_id, source, kind, fingerprint, generation);
CREATE UNIQUE INDEX ix_alerts_open ON alerts ("key") WHERE healed_at IS NULL;
CREATE INDEX ix_alerts_undelivered ON alerts (tried_at) WHERE delivered = 0;
CREATE INDEX ix_runs_open ON runs (moment, suffix) WHERE settled_at IS NULL;
CREATE INDEX ix_runs_order ON runs (moment, suffix);
CREATE INDEX ix_jobs_running ON jobs (run_id, job_id) WHERE outcome = 'running';
CREATE INDEX ix_artifacts_order ON artifacts (job_id, moment, suffix) WHERE is_current = 1;
CREATE INDEX ix_artifacts_fallback ON artifacts (job_id, as_of, moment, suffix) WHERE is_current = 1;
CREATE UNIQUE INDEX ix_artifacts_current ON artifacts (run_id, job_id) WHERE is_current = 1;
CREATE INDEX ix_unmet_fallbacks_upstream ON unmet_fallbacks (upstream, moment);
CREATE INDEX ix_artifact_inputs_input_artifact_id ON artifact_inputs (input_artifact_id);
CREATE VIEW "search_places" AS SELECT "search_places_rows"."run_id", "search_places_rows"."version", "search_places_rows"."place_id", "search_places_rows"."name", "search_places_rows"."visits", "search_places_rows"."score", "search_places_rows"."is_open", "search_places_rows"."seen_at", "search_places_rows"."extra", "search_places_rows"."request_id"
FROM "search_places_rows" JOIN artifacts ON artifacts.dataset = 'search_places' AND artifacts.run_id = "search_places_rows"."run_id" AND artifacts.version = "search_places_rows"."version" AND artifacts.is_current = 1;
COMMIT;

// Stores as older versions of the program wrote them. Never change these texts: files like them exist.
#pragma once
#include <string>

#include "core/store/sqlite.h"

namespace comera::test {

// Version 1: no active_s.
inline constexpr const char* kVersion1 = R"(
CREATE TABLE runs(
  run INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, created REAL NOT NULL, status TEXT NOT NULL,
  message TEXT NOT NULL DEFAULT '', pid INTEGER NOT NULL DEFAULT 0, boot_id TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '',
  heartbeat REAL NOT NULL DEFAULT 0, seed INTEGER NOT NULL DEFAULT 0, device TEXT NOT NULL DEFAULT '',
  data_fingerprint TEXT NOT NULL DEFAULT '', parent TEXT NOT NULL DEFAULT '', fork_step INTEGER NOT NULL DEFAULT 0,
  step INTEGER NOT NULL DEFAULT 0, total_steps INTEGER NOT NULL DEFAULT 0, stage TEXT NOT NULL DEFAULT '',
  train_loss REAL, val_loss REAL, val_accuracy REAL, entries REAL, bytes REAL, dense_bytes REAL, compression REAL, peak_bytes REAL,
  step_ms REAL, tags TEXT NOT NULL DEFAULT '[]', notes TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0,
  config TEXT NOT NULL DEFAULT '{}');
CREATE INDEX runs_by_time ON runs(created);
CREATE TABLE metric_names(metric INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE metrics(run INTEGER NOT NULL, metric INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
  PRIMARY KEY(run, metric, step)) WITHOUT ROWID;
CREATE TABLE steps(run INTEGER NOT NULL, step INTEGER NOT NULL, wall_time REAL NOT NULL, PRIMARY KEY(run, step)) WITHOUT ROWID;
CREATE TABLE ranks(run INTEGER NOT NULL, layer TEXT NOT NULL, bond INTEGER NOT NULL, step INTEGER NOT NULL, rank INTEGER NOT NULL,
  PRIMARY KEY(run, layer, bond, step)) WITHOUT ROWID;
CREATE TABLE memory(run INTEGER NOT NULL, purpose TEXT NOT NULL, step INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY(run, purpose, step)) WITHOUT ROWID;
CREATE TABLE events(run INTEGER NOT NULL, seq INTEGER NOT NULL, step INTEGER NOT NULL, kind TEXT NOT NULL, time REAL NOT NULL,
  body TEXT NOT NULL, PRIMARY KEY(run, seq)) WITHOUT ROWID;
CREATE TABLE checkpoints(run INTEGER NOT NULL, step INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL, kind TEXT NOT NULL,
  time REAL NOT NULL, PRIMARY KEY(run, step)) WITHOUT ROWID;
CREATE TABLE spills(token TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIEW run_metrics AS
  SELECT runs.id AS id, runs.name AS run_name, metric_names.name AS metric, metrics.step AS step, steps.wall_time AS wall_time,
         metrics.value AS value
  FROM runs JOIN metrics USING(run) JOIN metric_names USING(metric) LEFT JOIN steps ON steps.run = metrics.run AND steps.step = metrics.step;
INSERT INTO runs(id, name, created, status, heartbeat, seed, tags, config) VALUES('r-000001', 'old', 1000, 'finished', 1060, 5, '["a"]', '{"x":1}');
INSERT INTO runs(id, name, created, status, heartbeat) VALUES('r-000002', 'older', 900, 'running', 800);
INSERT INTO metric_names VALUES(3, 'loss');
INSERT INTO metrics VALUES(1, 3, 10, 0.5);
INSERT INTO steps VALUES(1, 10, 1010);
PRAGMA application_id = 1129270597;
PRAGMA user_version = 1;
)";

inline void make_version_1(const std::string& path) {
  Database db(path, Database::Mode::create);
  db.text("PRAGMA journal_mode = WAL");
  db.run(kVersion1);
}

}  // namespace comera::test

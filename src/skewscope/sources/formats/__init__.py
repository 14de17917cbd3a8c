"""One file per format of counters, metrics, logs and flow records; found by the loader."""

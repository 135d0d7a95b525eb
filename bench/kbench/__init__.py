"""The benchmark's own library: see bench/README.md."""

/*
 * What the files about probes without a process share: offline.c has files and texts, offline_sites.c what specs mean
 * in one file, offline_refusals.c what is told of sites that cannot be probed. Private to the room.
 */
#ifndef KYMO_PROBE_OFFLINE_OFFLINE_STATE_H
#define KYMO_PROBE_OFFLINE_OFFLINE_STATE_H

#include <stdint.h>

#include "base/vec.h"
#include "sym/files.h"

struct kymo_code;
struct kymo_events;
struct kymo_module;
struct kymo_offline_site;
struct kymo_spec;

struct offline_file {
	/* of the file itself; as processes' maps name it, which some file systems do differently */
	struct kymo_file_id id, mapped;
	int fd;
	char *path;
	struct kymo_module *module;
	struct kymo_code *code; /* made for specs of every instruction */
	bool *resolved;         /* per spec: its sites in this file are known */
};

/* Of one spec. */
struct offline_spec {
	struct kymo_file_id id; /* of the file that its name leads to from here */
	bool is_met;
	size_t n_refused, n_tried;
	char reasons[1024];
};

struct kymo_offline {
	const struct kymo_spec *specs;
	struct offline_spec *states;
	size_t n_specs;
	struct kymo_events *events;
	void (*warn)(const char *sentence, void *data);
	void *data;
	KYMO_VEC(struct offline_file) files;
	KYMO_VEC(struct kymo_offline_site) sites;
};

#endif

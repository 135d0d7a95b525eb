#include "gdb/state.h"

#include <stdlib.h>

#include "gdb/begin.h"
#include "gdb/files.h"
#include "gdb/settings.h"
#include "gdb/thread.h"

void gdb_free_state(struct kymo_gdb *gdb)
{
	while (gdb->processes.n)
		gdb_drop_process(gdb, gdb->processes.items[0]);
	kymo_vec_deinit(&gdb->processes);
	kymo_vec_deinit(&gdb->threads);
	kymo_vec_deinit(&gdb->ends);
	kymo_vec_deinit(&gdb->children);
	gdb_free_environment(gdb);
	gdb_free_argv(gdb);
	gdb_close_files(gdb);
	gdb_text_deinit(&gdb->console);
	gdb_text_deinit(&gdb->printed.text);
	gdb_text_deinit(&gdb->document);
	free(gdb->registers);
	gdb_trace_deinit(&gdb->tracing);
}

#include "probe/memory/layout.h"

#include <stdlib.h>

void probes_layout_deinit(struct probe_layout *layout)
{
	for (size_t i = 0; i < layout->regions.n; i++)
		free(layout->regions.items[i].bytes);
	kymo_vec_deinit(&layout->regions);
	kymo_vec_deinit(&layout->stretches);
	kymo_vec_deinit(&layout->joined);
	kymo_vec_deinit(&layout->trampolines);
}

#include "record/pool.h"

#include "record/recording.h"
#include "trace/kernel_stream.h"

struct kymo_error *recording_make_pool(struct recording *recording)
{
	if (!recording->wanted.options->keep || recording->run.pool)
		return NULL;
	return kymo_kernel_pool_create(recording_kept_size(recording), &recording->run.pool);
}

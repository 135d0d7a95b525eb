#include "cli/threads_look.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "cli/threads.h"
#include "cli/threads_engines.h"
#include "procfs/info.h"
#include "procfs/threads.h"

static bool is_same_thread(const struct kymo_thread_info *one, const struct kymo_thread_info *other)
{
	return one->tid == other->tid && one->start_time == other->start_time;
}

/* Both are sorted by tid. A thread that is new has used its time since the look before. NULL: memory is out. */
static double *shares_since(const struct cli_threads *before, const struct kymo_thread_infos *now, uint64_t ns)
{
	double *shares = calloc(now->n, sizeof(*shares));

	for (size_t i = 0, j = 0; shares && i < now->n; i++) {
		uint64_t used = now->items[i].cpu_ns;

		while (j < before->threads.n && before->threads.items[j].tid < now->items[i].tid)
			j++;
		if (j < before->threads.n && is_same_thread(&before->threads.items[j], &now->items[i]))
			used -= before->threads.items[j].cpu_ns;
		shares[i] = ns ? (double)used / (double)ns : 0;
	}
	return shares;
}

/* Ids may have begun again from below, so it need not be the lowest. */
static const struct kymo_thread_info *first_thread(const struct kymo_thread_infos *threads, pid_t pid)
{
	size_t i = 0;

	while (i < threads->n && threads->items[i].tid != pid)
		i++;
	return i < threads->n ? &threads->items[i] : NULL;
}

/* The first thread stays as long as the process does. */
static bool is_another(const struct cli_threads *before, const struct kymo_thread_infos *now)
{
	const struct kymo_thread_info *then = first_thread(&before->threads, before->pid),
				      *first = first_thread(now, before->pid);

	return then && first && !is_same_thread(then, first);
}

static void look_at_recordings(struct cli_threads *view)
{
	struct kymo_error *error = kymo_status(view->pid, &view->recordings, &view->n_recordings);

	view->knows_recordings = !error || error->code != KYMO_ERROR_PERMISSION;
	kymo_error_destroy(error);
}

void cli_threads_deinit(struct cli_threads *view)
{
	kymo_thread_infos_deinit(&view->threads);
	for (size_t i = 0; i < view->n_recordings; i++)
		kymo_status_deinit(&view->recordings[i]);
	free(view->recordings);
	free(view->shares);
	free(view->engines);
	*view = (struct cli_threads){ 0 };
}

struct kymo_error *cli_threads_look(struct cli_threads *view, pid_t pid)
{
	struct cli_threads next = { .at_ns = kymo_now_ns() };
	const struct kymo_thread_info *first;
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(pid, &info);

	if (!error)
		error = kymo_thread_infos_read(info.tgid, &next.threads);
	if (error)
		return error;
	if (is_another(view, &next.threads)) {
		cli_threads_deinit(&next);
		return kymo_error_create(KYMO_ERROR_GONE, "there is no process %d", pid);
	}
	next.pid = info.tgid;
	first = first_thread(&next.threads, next.pid);
	snprintf(next.comm, sizeof(next.comm), "%s", first ? first->comm : info.comm);
	if (view->threads.n)
		next.shares = shares_since(view, &next.threads, next.at_ns - view->at_ns);
	look_at_recordings(&next);
	cli_threads_look_at_engines(&next, view);
	cli_threads_deinit(view);
	*view = next;
	return NULL;
}

/* When a recording is over, and others trace what it has followed: the hub through which they do is this process', and stays for them (docs/design/following.md). */
#include <poll.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "record/recording.h"

#define LOOK_MS 20	/* as the tree wants it */

static void note_end(struct kymo_record_result *result, struct kymo_tree *tree)
{
	if (!result->command_ended)
		result->command_ended = kymo_tree_has_ended(tree, result->pid, &result->command_status);
}

void recording_share(struct recording *recording)
{
	struct kymo_tree *tree = recording->tree;
	pid_t who;

	if (!tree)
		return;
	while (recording->targets.n)
		kymo_error_destroy(recording_drop_target(recording, recording->targets.items[0]));
	recording->result.pid = recording->pid;
	if (kymo_tree_linger(tree, &who))
		recording->result.shared = kymo_take(recording->tree);
	note_end(&recording->result, tree);
}

bool kymo_record_serve(struct kymo_record_result *result, int ms, pid_t *who_ret)
{
	struct pollfd changed = { .fd = kymo_tree_fd(result->shared), .events = POLLIN };
	uint64_t deadline = kymo_now_ns() + (uint64_t)ms * 1000000;
	bool is_shared;

	while ((is_shared = kymo_tree_linger(result->shared, who_ret)) && !kymo_record_stop && kymo_now_ns() < deadline)
		poll(&changed, 1, LOOK_MS);
	note_end(result, result->shared);
	return is_shared;
}

void kymo_record_leave(struct kymo_record_result *result)
{
	kymo_tree_destroy(kymo_take(result->shared));
}

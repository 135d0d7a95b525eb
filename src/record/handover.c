/* When a recording is over, and others trace what it has followed: the hub through which they do is this process', and
 * stays for them (docs/internals/following.md). */
#include "record/handover.h"

#include <errno.h>
#include <poll.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "hub/launch.h"
#include "hub/remote/door.h"
#include "kymo/engine.h"
#include "proc/tree.h"
#include "record/recording.h"
#include "record/targets.h"
#include "strace/recorded/source.h"

#define LOOK_MS 20 /* as the tree wants it */

static void note_end(struct kymo_record_result *result, struct kymo_tree *tree)
{
	if (!result->command_ended)
		result->command_ended = kymo_tree_has_ended(tree, result->pid, &result->command_status);
}

static bool serve_by_hub(struct kymo_record_result *result, int ms, pid_t *who_ret)
{
	bool is_shared = kymo_hub_hand_over(result->shared_hub, -1, ms) == -EAGAIN;

	if (is_shared)
		*who_ret = kymo_hub_visitor(result->shared_hub);
	if (!result->command_ended)
		result->command_ended = hub_launched_ended(result->shared_hub, result->pid, &result->command_status);
	return is_shared;
}

static void leave_hub(struct kymo_record_result *result)
{
	int status;

	if (!kymo_hub_close(kymo_take(result->shared_hub), result->pid, &status))
		return;
	result->command_ended = true;
	result->command_status = status;
}

void recording_share(struct recording *recording)
{
	struct kymo_tree *tree = recording->run.tree;
	pid_t who;

	if (recording->run.calls) {
		recording->result.pid = recording->run.pid;
		recording->result.shared_hub = kymo_call_source_share(recording->run.calls);
	}
	if (!tree)
		return;
	while (recording->run.targets.n)
		kymo_error_destroy(recording_drop_target(recording, recording->run.targets.items[0]));
	recording->result.pid = recording->run.pid;
	if (kymo_tree_hand_over(tree, &who))
		recording->result.shared = kymo_take(recording->run.tree);
	note_end(&recording->result, tree);
}

bool kymo_record_serve(struct kymo_record_result *result, const struct kymo_record_control *control, int ms,
		       pid_t *who_ret)
{
	struct pollfd changed = { .events = POLLIN };
	uint64_t deadline = kymo_now_ns() + (uint64_t)ms * 1000000;
	bool is_shared;

	if (result->shared_hub)
		return serve_by_hub(result, ms, who_ret);
	while ((is_shared = kymo_tree_hand_over(result->shared, who_ret)) && !control->stop &&
	       kymo_now_ns() < deadline) {
		changed.fd = kymo_tree_fd(result->shared);
		poll(&changed, 1, LOOK_MS);
	}
	note_end(result, result->shared);
	return is_shared;
}

void kymo_record_leave(struct kymo_record_result *result)
{
	if (result->shared_hub)
		leave_hub(result);
	else
		kymo_tree_destroy(kymo_take(result->shared));
}

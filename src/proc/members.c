/* The members of a tree, and what is to be told of it. */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "hub/doze.h"
#include "hub/freeze/freeze.h"
#include "hub/freeze/owner.h"
#include "hub/hub.h"
#include "hub/state.h"
#include "kymo/engine.h"
#include "proc/members.h"
#include "proc/state.h"
#include "proc/tree.h"

struct kymo_process *kymo_tree_find(const struct kymo_tree *tree, pid_t pid)
{
	for (size_t i = tree->members.n; i-- > 0;)
		if (tree->members.items[i]->pid == pid && tree->members.items[i]->state != PROCESS_PAST)
			return tree->members.items[i];
	return NULL;
}

bool kymo_tree_add(struct kymo_tree *tree, struct kymo_process *process)
{
	if (!process->owner)
		process->owner = hub_owner_create();
	if (!process->owner || !kymo_vec_push(&tree->members, process))
		return false;
	process->owner->takes = false;
	process->tree = tree;
	hub_freeze_follow(process->owner, process->pid);
	return true;
}

void kymo_tree_forget(struct kymo_tree *tree, const struct kymo_process *process)
{
	size_t left = 0;

	for (size_t i = 0; i < tree->members.n; i++) {
		if (tree->members.items[i] == process)
			continue;
		if (tree->members.items[i]->memory_of == process)
			tree->members.items[i]->memory_of = NULL;
		tree->members.items[left++] = tree->members.items[i];
	}
	tree->members.n = left;
	left = tree->first;
	for (size_t i = tree->first; i < tree->queue.n; i++) {
		struct kymo_tree_event *event = &tree->queue.items[i];

		if (event->other == process)
			event->other = NULL;
		if (event->process == process)
			kymo_error_destroy(event->refusal);
		else
			tree->queue.items[left++] = *event;
	}
	tree->queue.n = left;
}

pid_t kymo_tree_sharing_child(const struct kymo_process *process)
{
	const struct kymo_tree *tree = process->tree;

	for (size_t i = 0; i < tree->members.n; i++)
		if (tree->members.items[i]->memory_of == process && tree->members.items[i]->state != PROCESS_PAST)
			return tree->members.items[i]->pid;
	return 0;
}

void kymo_tree_tell(struct kymo_tree *tree, const struct kymo_tree_event *event)
{
	if (tree->first == tree->queue.n)
		tree->first = tree->queue.n = 0;
	if (!kymo_vec_push(&tree->queue, *event))
		kymo_error_destroy(event->refusal);
}

bool kymo_tree_is_alone(const struct kymo_tree *tree)
{
	return tree->is_alone;
}

bool kymo_tree_pump(struct kymo_tree *tree)
{
	return hub_pump(tree->hub);
}

bool kymo_tree_tells_of_next(const struct kymo_tree *tree)
{
	return hub_gets_signals(tree->hub) && tree->hub->tasks.n == 1;
}

void kymo_tree_doze(struct kymo_tree *tree, unsigned int spins)
{
	hub_doze(tree->hub, 0, spins);
}

void kymo_tree_free(struct kymo_tree *tree)
{
	kymo_hub_destroy(tree->hub);
	for (size_t i = tree->first; i < tree->queue.n; i++)
		kymo_error_destroy(tree->queue.items[i].refusal);
	kymo_vec_deinit(&tree->members);
	kymo_vec_deinit(&tree->queue);
	free(tree);
}

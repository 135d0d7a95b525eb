#include "report/open_calls.h"

#include "ctf/ctf.h"

/* Bytes of a call. */
#define CALL_MIN 2u
#define CALL_MAX 7u

static bool comes_back(const struct passage *call, const struct passage *passage)
{
	if (call->kind == KYMO_CTF_BRANCH_ENTER)
		return false;
	if (call->kind == KYMO_CTF_BRANCH_SIGNAL)
		return passage->kind == KYMO_CTF_BRANCH_KERNEL && passage->to == call->from;
	return passage->kind != KYMO_CTF_BRANCH_KERNEL && passage->to >= call->from + CALL_MIN &&
	       passage->to <= call->from + CALL_MAX;
}

/* A handler returns to where the kernel has it return, and what other code has called to that. */
static size_t left_by_unknown_return(const struct passage *passages, const struct open_calls *open)
{
	size_t n = open->items.n;

	while (n && passages[open->items.items[n - 1]].kind == KYMO_CTF_BRANCH_CALL)
		n--;
	return n && passages[open->items.items[n - 1]].kind == KYMO_CTF_BRANCH_ENTER ? n - 1 : n;
}

/* How many calls are left after it. */
static size_t left_after(const struct passage *passages, const struct open_calls *open, const struct passage *passage)
{
	for (size_t i = open->items.n; i-- > 0;)
		if (comes_back(&passages[open->items.items[i]], passage))
			return i;
	return passage->kind == KYMO_CTF_BRANCH_RETURN ? left_by_unknown_return(passages, open) : open->items.n;
}

static void drop_entries(const struct passage *passages, struct open_calls *open)
{
	size_t n = 0;

	for (size_t i = 0; i < open->items.n; i++)
		if (passages[open->items.items[i]].kind != KYMO_CTF_BRANCH_ENTER)
			open->items.items[n++] = open->items.items[i];
	open->items.n = n;
}

bool kymo_open_calls_find(const struct passage *passages, size_t n, struct open_calls *ret)
{
	for (size_t i = 0; i < n; i++) {
		const size_t before = ret->items.n;

		switch (passages[i].kind) {
		case KYMO_CTF_BRANCH_CALL:
		case KYMO_CTF_BRANCH_SIGNAL:
			if (!kymo_vec_push(&ret->items, i))
				return false;
			break;
		case KYMO_CTF_BRANCH_RETURN:
		case KYMO_CTF_BRANCH_ENTER:
		case KYMO_CTF_BRANCH_KERNEL:
			ret->items.n = left_after(passages, ret, &passages[i]);
			if (passages[i].kind == KYMO_CTF_BRANCH_ENTER && passages[i].is_entry &&
			    ret->items.n == before && !kymo_vec_push(&ret->items, i))
				return false;
			break;
		case KYMO_CTF_BRANCH_EXEC:
			ret->items.n = 0;
			break;
		default:
			break;
		}
	}
	drop_entries(passages, ret);
	return true;
}

/* Intel PT: packets tell which way conditional branches went, and where indirect ones led; the code tells the rest. */
#include "branch/raw_pt.h"

#include <dlfcn.h>
#include <errno.h>
#include <intel-pt.h>
#include <pthread.h>
#include <string.h>

#include "base/cleanup.h"
#include "branch/branch.h"
#include "branch/raw.h"

/* Instructions from one packet to the next: only bytes that no processor has written have more. */
#define STRAIGHT_MAX (1u << 20)

/* ---- libipt ---------------------------------------------------------------------------------- */

/* It is loaded when packets are decoded, so that no other start of kymo has to map it. */
static struct {
	pthread_once_t once;
	bool is_there;
	struct pt_insn_decoder *(*alloc)(const struct pt_config *config);
	void (*free)(struct pt_insn_decoder *decoder);
	struct pt_image *(*image)(struct pt_insn_decoder *decoder);
	int (*set_callback)(struct pt_image *image, read_memory_callback_t *callback, void *context);
	int (*sync_forward)(struct pt_insn_decoder *decoder);
	int (*next)(struct pt_insn_decoder *decoder, struct pt_insn *insn, size_t size);
	int (*event)(struct pt_insn_decoder *decoder, struct pt_event *event, size_t size);
	int (*offset)(const struct pt_insn_decoder *decoder, uint64_t *offset);
} libipt = { .once = PTHREAD_ONCE_INIT };

static void load(void)
{
	const struct {
		const char *name;
		void **function;
	} functions[] = {
		{ "pt_insn_alloc_decoder", (void **)&libipt.alloc },
		{ "pt_insn_free_decoder", (void **)&libipt.free },
		{ "pt_insn_get_image", (void **)&libipt.image },
		{ "pt_image_set_callback", (void **)&libipt.set_callback },
		{ "pt_insn_sync_forward", (void **)&libipt.sync_forward },
		{ "pt_insn_next", (void **)&libipt.next },
		{ "pt_insn_event", (void **)&libipt.event },
		{ "pt_insn_get_offset", (void **)&libipt.offset },
	};
	void *library = dlopen("libipt.so.2", RTLD_NOW | RTLD_LOCAL);

	libipt.is_there = library;
	for (size_t i = 0; i < kymo_countof(functions) && library; i++) {
		*functions[i].function = dlsym(library, functions[i].name);
		libipt.is_there &= *functions[i].function != NULL;
	}
}

bool branch_pt_is_there(void)
{
	pthread_once(&libipt.once, load);
	return libipt.is_there;
}

/* ---- a thread -------------------------------------------------------------------------------- */

struct follower {
	const struct branch_raw *raw;
	struct pt_insn_decoder *decoder;
	struct pt_insn last;     /* that was executed */
	bool has_last;           /* … is known, and what comes next follows it */
	bool has_begun;          /* an instruction is known */
	bool is_left;            /* the kernel has the thread */
	bool is_interrupted;     /* … by no instruction of its own */
	uint64_t left;           /* where it was then: the call, or what is not executed yet */
	uint64_t packet;         /* offset of the last packet */
	unsigned int n_straight; /* instructions since it */
};

static int read_code(uint8_t *bytes, size_t size, const struct pt_asid *asid, uint64_t address, void *data)
{
	const struct branch_raw *raw = data;
	const size_t n = raw->read(address, bytes, size, raw->data);

	return n ? (int)n : -pte_nomap;
}

static void tell(const struct follower *follower, enum kymo_branch_kind kind, uint64_t from, uint64_t to, bool is_gap)
{
	const struct kymo_branch branch = { .from = from, .to = to, .kind = (uint8_t)kind };

	follower->raw->is_taken(&branch, is_gap, follower->raw->data);
}

/* The last instruction has led to `to`. */
static void follow_last(const struct follower *follower, uint64_t to)
{
	const struct pt_insn *last = &follower->last;

	switch (last->iclass) {
	case ptic_call:
		tell(follower, KYMO_BRANCH_CALL, last->ip, to, false);
		break;
	case ptic_return:
		tell(follower, KYMO_BRANCH_RETURN, last->ip, to, false);
		break;
	case ptic_jump:
		tell(follower, KYMO_BRANCH_JUMP, last->ip, to, false);
		break;
	case ptic_cond_jump:
		if (to != last->ip + last->size)
			tell(follower, KYMO_BRANCH_JUMP, last->ip, to, false);
		break;
	default:
		break;
	}
}

static void take(struct follower *follower, const struct pt_insn *insn)
{
	if (follower->has_last)
		follow_last(follower, insn->ip);
	else if (!follower->is_left || !follower->has_begun)
		tell(follower, KYMO_BRANCH_ENTER, 0, insn->ip, follower->has_begun);
	follower->last = *insn;
	follower->has_last = follower->has_begun = true;
	follower->is_left = false;
}

static void leave(struct follower *follower, uint64_t at, bool is_interrupted)
{
	if (is_interrupted && follower->has_last && at != follower->last.ip)
		follow_last(follower, at);
	follower->is_left = follower->has_begun;
	follower->is_interrupted = is_interrupted;
	follower->left = at;
	follower->has_last = false;
}

/* The thread goes on where it was, or the kernel has led it elsewhere. */
static void come_back(struct follower *follower, uint64_t to)
{
	const bool goes_on = follower->is_interrupted
				     ? to == follower->left
				     : to == follower->left || to == follower->last.ip + follower->last.size;

	if (follower->is_left && !goes_on)
		tell(follower, follower->is_interrupted ? KYMO_BRANCH_SIGNAL : KYMO_BRANCH_KERNEL, follower->left, to,
		     false);
}

static void heed(struct follower *follower, const struct pt_event *event)
{
	switch (event->type) {
	case ptev_enabled:
		come_back(follower, event->variant.enabled.ip);
		break;
	case ptev_disabled:
		leave(follower, follower->last.ip, false);
		break;
	case ptev_async_disabled:
		leave(follower, event->variant.async_disabled.at, true);
		break;
	case ptev_async_branch:
		leave(follower, event->variant.async_branch.from, true);
		come_back(follower, event->variant.async_branch.to);
		break;
	case ptev_overflow:
		follower->has_last = follower->is_left = false;
		break;
	default:
		break;
	}
}

static int heed_events(struct follower *follower, int status)
{
	struct pt_event event;

	while (status >= 0 && status & pts_event_pending) {
		status = libipt.event(follower->decoder, &event, sizeof(event));
		if (status >= 0)
			heed(follower, &event);
	}
	return status;
}

/* Whether it goes on without a packet for too long. */
static bool is_lost(struct follower *follower)
{
	uint64_t packet = 0;

	(void)libipt.offset(follower->decoder, &packet);
	if (packet != follower->packet)
		follower->n_straight = 0;
	follower->packet = packet;
	return ++follower->n_straight > STRAIGHT_MAX;
}

/* Up to the end, or where the packets and the code do not fit each other. */
static int follow(struct follower *follower, int status)
{
	while (status >= 0) {
		struct pt_insn insn = { .iclass = ptic_error };

		status = heed_events(follower, status);
		if (status < 0)
			break;
		status = libipt.next(follower->decoder, &insn, sizeof(insn));
		if (insn.iclass != ptic_error)
			take(follower, &insn);
		else if (status == -pte_nomap && follower->has_last)
			follow_last(follower, insn.ip); /* to code that is not known */
		if (is_lost(follower))
			return -pte_bad_context;
	}
	return status;
}

int branch_pt_decode(const struct branch_raw *raw)
{
	struct follower follower = { .raw = raw };
	struct pt_config config;
	int status;

	if (!branch_pt_is_there())
		return -ENOSYS;
	if (!raw->size)
		return 0;
	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)raw->bytes; /* only encoders write there */
	config.end = config.begin + raw->size;
	follower.decoder = libipt.alloc(&config);
	if (!follower.decoder)
		return -ENOMEM;
	libipt.set_callback(libipt.image(follower.decoder), read_code, (void *)(uintptr_t)raw);
	do {
		status = libipt.sync_forward(follower.decoder);
		if (status >= 0)
			status = follow(&follower, status);
		else
			break;
		follower.has_last = follower.is_left = false;
		follower.n_straight = 0;
	} while (status != -pte_eos);
	libipt.free(follower.decoder);
	return 0;
}

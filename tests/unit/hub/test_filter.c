/* Commands with picked calls: the filter's program, and what a hub tells and keeps of processes that have it. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

#include "engines.h"
#include "hub/filter.h"

#define WORDS (KYMO_CALL_NUMBERS / 64)

/* ---- the program ----------------------------------------------------------------------------- */

static uint32_t word_of(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;

	assert_true(offset + sizeof(word) <= sizeof(*data));
	memcpy(&word, (const uint8_t *)data + offset, sizeof(word));
	return word;
}

/* What the kernel would do with the filter. */
static uint32_t verdict_of(const struct sock_filter *filter, size_t n, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t at = 0;; at++) {
		const struct sock_filter *i = &filter[at];

		assert_true(at < n);
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = word_of(data, i->k);
			break;
		case BPF_JMP | BPF_JA:
			at += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			at += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			at += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			at += a & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction %x", i->code);
		}
	}
}

static bool is_picked(const struct sock_filter *filter, size_t n, uint32_t arch, uint32_t number, uint64_t flags)
{
	const struct seccomp_data data = { .nr = (int)number, .arch = arch, .args = { flags } };
	uint32_t verdict = verdict_of(filter, n, &data);

	assert_true(verdict == SECCOMP_RET_ALLOW || verdict == (SECCOMP_RET_TRACE | HUB_FILTER_MARK));
	return verdict != SECCOMP_RET_ALLOW;
}

static void check_filter(const uint64_t calls[WORDS])
{
	static struct sock_filter filter[HUB_FILTER_MAX];
	size_t n = hub_filter_make(calls, filter);

	assert_true(n <= HUB_FILTER_MAX);
	for (uint32_t i = 0; i < KYMO_CALL_NUMBERS; i++) {
		assert_int_equal(is_picked(filter, n, AUDIT_ARCH_X86_64, i, 0),
				 i == SYS_clone3 || calls[i / 64] >> (i % 64) & 1);
		assert_true(is_picked(filter, n, AUDIT_ARCH_I386, i, 0));
		assert_true(is_picked(filter, n, AUDIT_ARCH_X86_64, i | 0x40000000, 0)); /* x32 */
	}
	assert_true(is_picked(filter, n, AUDIT_ARCH_X86_64, SYS_clone, CLONE_VM | CLONE_UNTRACED));
	assert_true(is_picked(filter, n, AUDIT_ARCH_X86_64, KYMO_CALL_NUMBERS, 0));
	assert_true(is_picked(filter, n, AUDIT_ARCH_X86_64, UINT32_MAX, 0));
}

static void the_filter_picks_its_set_and_what_can_not_be_let_pass(void **state)
{
	uint64_t none[WORDS] = { 0 }, all[WORDS], odd[WORDS], set[WORDS];

	memset(all, 0xff, sizeof(all));
	memset(odd, 0xaa, sizeof(odd)); /* as many runs as there can be */
	check_filter(none);
	check_filter(all);
	check_filter(odd);
	srandom(1);
	for (int i = 0; i < 50; i++) {
		for (int j = 0; j < WORDS; j++)
			set[j] = ((uint64_t)random() << 40 ^ (uint64_t)random() << 20 ^ (uint64_t)random()) &
				 (i % 2 ? UINT64_MAX : (uint64_t)random() << 16);
		check_filter(set);
	}
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* Of one kind of call: told at entries and at exits. */
struct told_calls {
	atomic_int entries, exits, others;
};

static unsigned int count_kills(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				void *report)
{
	struct told_calls *calls = book->more;
	const struct kymo_syscall_report *call = report;

	if (told == ENTRY && call->number == SYS_kill)
		calls->entries++;
	else if (told == EXIT_OF_CALL && call->is_entry_known && call->number == SYS_kill)
		calls->exits++;
	else if (told == ENTRY && call->number == SYS_chdir)
		calls->others++;
	return told == SIGNAL ? KYMO_ACTION_RESUME | ((struct kymo_signal_report *)report)->verdict
			      : KYMO_ACTION_RESUME;
}

#define CALLS_AND_ENDS (KYMO_EVENTS_SYSCALL | KYMO_EVENT_CLONE | KYMO_EVENT_DEATH | KYMO_EVENT_REAP)

static pid_t launch_with_kill_picked(struct kymo_hub *hub, const char *script)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)(uintptr_t)script, NULL };
	uint64_t calls[WORDS] = { 0 };
	pid_t pid;

	calls[SYS_kill / 64] |= 1ull << SYS_kill % 64;
	assert_int_equal(kymo_hub_launch_picking(hub, 0, argv, calls, &pid), 0);
	return pid;
}

#define TEN_KILLS "for i in 1 2 3 4 5 6 7 8 9 10; do cd /; kill -0 $$; done; exit 7"

static void a_picked_call_is_told_once_to_all_engines_that_want_it(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct told_calls few = { 0 }, many = { 0 };
		struct book content = { .hook = count_kills, .more = &few },
			    greedy = { .hook = count_kills, .more = &many };
		struct kymo_hub *hub = new_hub();
		pid_t pid = launch_with_kill_picked(hub, TEN_KILLS);
		int status;

		if (i != 2)
			kymo_engine_put(engine_of(hub, pid, &content, CALLS_AND_ENDS | KYMO_MASK_PICKED_CALLS));
		if (i != 0)
			kymo_engine_put(engine_of(hub, pid, &greedy, CALLS_AND_ENDS));
		assert_int_equal(kymo_hub_start(hub, pid), 0);
		assert_int_equal(kymo_hub_wait(hub, pid, &status), 0);
		assert_int_equal(status, 7 << 8);
		assert_int_equal(few.entries, i == 2 ? 0 : 10);
		assert_int_equal(few.exits, i == 2 ? 0 : 10);
		assert_int_equal(many.entries, i == 0 ? 0 : 10);
		assert_int_equal(many.exits, i == 0 ? 0 : 10);
		if (i == 0)
			assert_int_equal(few.others, 0);
		else
			assert_int_equal(many.others, 10);
		kymo_hub_destroy(hub);
	}
}

static unsigned int abort_kills(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				void *report)
{
	const struct kymo_syscall_report *call = report;

	count_kills(book, engine, told, action, report);
	if (told == ENTRY && call->number == SYS_kill)
		return KYMO_ACTION_RESUME | KYMO_SYSCALL_ABORT;
	if (told == EXIT_OF_CALL && call->is_aborted)
		assert_int_equal(kymo_engine_set_result(engine, 0), 0);
	return told == SIGNAL ? KYMO_ACTION_RESUME | ((struct kymo_signal_report *)report)->verdict
			      : KYMO_ACTION_RESUME;
}

/* At both kinds of entry stops. */
static void a_picked_call_can_be_aborted(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct told_calls calls = { 0 };
		struct book book = { .hook = abort_kills, .more = &calls };
		struct kymo_hub *hub = new_hub();
		pid_t pid = launch_with_kill_picked(hub, "kill -9 $$ && exit 3");
		int status;

		kymo_engine_put(engine_of(hub, pid, &book, CALLS_AND_ENDS | (i ? KYMO_MASK_PICKED_CALLS : 0)));
		assert_int_equal(kymo_hub_start(hub, pid), 0);
		assert_int_equal(kymo_hub_wait(hub, pid, &status), 0);
		assert_int_equal(status, 3 << 8);
		assert_int_equal(calls.entries, 1);
		assert_int_equal(calls.exits, 1);
		kymo_hub_destroy(hub);
	}
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void a_process_with_the_filter_stays_traced_without_engines(void **state)
{
	struct told_calls calls = { 0 };
	struct book book = { .hook = count_kills, .more = &calls };
	struct kymo_hub *hub = new_hub();
	struct kymo_engine *engine;
	int status, in[2], before = dup(0);
	pid_t pid;

	assert_int_equal(pipe(in), 0);
	dup2(in[0], 0);
	pid = launch_with_kill_picked(hub, "kill -0 $$; read word; (kill -0 $$ && exit 4); exit $?");
	dup2(before, 0);
	engine = engine_of(hub, pid, &book, CALLS_AND_ENDS | KYMO_MASK_PICKED_CALLS);
	assert_int_equal(kymo_hub_start(hub, pid), 0);
	eventually(calls.exits == 1);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_DETACH), 0);
	assert_int_equal(kymo_engine_barrier(engine), -ESRCH);
	assert_int_equal(book.told[RELEASE], 0);
	kymo_engine_put(engine);
	assert_int_equal(tracer_of(pid), hub->tid);
	assert_int_equal(write(in[1], "x\n", 2), 2); /* the children's call, and theirs, succeed */
	assert_int_equal(kymo_hub_wait(hub, pid, &status), 0);
	assert_int_equal(status, 4 << 8);
	kymo_hub_destroy(hub);
	close(in[0]);
	close(in[1]);
	close(before);
}

static void a_process_with_the_filter_ends_with_the_hub_and_so_do_its_children(void **state)
{
	struct told_calls calls = { 0 };
	struct book book = { .hook = count_kills, .more = &calls };
	struct kymo_hub *hub = new_hub();
	char child[32] = "";
	int out[2], before = dup(1);
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	dup2(out[1], 1);
	pid = launch_with_kill_picked(hub, "sleep 1000 >/dev/null & echo $!; kill -0 $!; wait");
	dup2(before, 1);
	kymo_engine_put(engine_of(hub, pid, &book, CALLS_AND_ENDS | KYMO_MASK_PICKED_CALLS));
	assert_int_equal(kymo_hub_start(hub, pid), 0);
	eventually(calls.exits == 1);
	assert_true(read(out[0], child, sizeof(child) - 1) > 0);
	kymo_hub_destroy(hub);
	eventually(state_of(pid) == 'X' || state_of(pid) == 'Z');
	waitpid(pid, NULL, __WALL | WNOHANG);
	eventually(state_of(atoi(child)) == 'X' || state_of(atoi(child)) == 'Z');
	close(out[0]);
	close(out[1]);
	close(before);
}

static void wrong_words_are_refused(void **state)
{
	char *argv[] = { (char *)"true", NULL };
	struct kymo_hub *hub = new_hub();
	struct book book = { 0 };
	struct kymo_engine *engine;
	pid_t pid;

	assert_int_equal(kymo_hub_launch_picking(hub, 0, argv, NULL, &pid), -EINVAL);
	pid = launch_with_kill_picked(hub, "true");
	engine = engine_of(hub, pid, &book, 0);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_MASK_PICKED_CALLS << 1), -EINVAL);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_filter_picks_its_set_and_what_can_not_be_let_pass),
		cmocka_unit_test(a_picked_call_is_told_once_to_all_engines_that_want_it),
		cmocka_unit_test(a_picked_call_can_be_aborted),
		cmocka_unit_test(a_process_with_the_filter_stays_traced_without_engines),
		cmocka_unit_test(a_process_with_the_filter_ends_with_the_hub_and_so_do_its_children),
		cmocka_unit_test(wrong_words_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

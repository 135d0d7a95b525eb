/*
 * Whether a hit is recorded, if only some are. It is decided after the filter, once for each hit, before the record is
 * begun: a restart of the sequence does not decide again.
 *
 *	the first of each n	an addition to the probe's word, and the rest of a division
 *	the first n		the same, and a comparison; after n hits, only a load
 *	a rate			the word is the stamp at which the bucket of tokens is full again
 *
 * With a rate, a hit takes a token: it sets the word forward, with one exchange. If another thread was faster, that
 * thread has the token, and this hit is left out: no thread tries again. A word that is much further ahead than any hit
 * sets it is of before the clock was set back (the machine has slept): the bucket is full then. Much, as this hit's
 * stamp may be older than that of the hit that has set the word: this thread may have lost its CPU in between.
 *
 * So n threads that hit at once have n different numbers, and the first n are n. The words are in a live page, which is
 * the process's own: a child that a signal handler forks within a pad has it, too, with zeros.
 */
#include "arch/x86_64/sample.h"

#include "wire/shared.h"

_Static_assert(KYMO_PAD_LIVE_SAMPLES >= KYMO_PAD_LIVE_VFORK_LIST + sizeof(struct kymo_wire_vforks),
	       "words of samples follow the list");
_Static_assert(KYMO_PAD_LIVE_SAMPLES + KYMO_WIRE_SAMPLES * sizeof(struct kymo_wire_sample) <= 4096,
	       "the live page holds them");

bool x86_sample_is_valid(const struct kymo_pad_sample *sample)
{
	const uint64_t most = sample->kind == KYMO_PAD_SAMPLE_RATE ? 4ull * KYMO_PAD_SAMPLE_MAX : KYMO_PAD_SAMPLE_MAX;

	return sample->kind == KYMO_PAD_SAMPLE_ALL || (sample->slot < KYMO_WIRE_SAMPLES && sample->n &&
						       sample->n <= most && sample->burst <= KYMO_PAD_SAMPLE_MAX);
}

/* rax = how many have come before */
static void emit_count(struct code *c)
{
	EMIT(c, 0xb8, 1, 0, 0, 0);             /* mov $1,%eax */
	EMIT(c, 0xf0, 0x49, 0x0f, 0xc1, 0x02); /* lock xadd %rax,(%r10) */
}

static void emit_every(struct code *c, uint32_t n, struct label *skip)
{
	emit_count(c);
	if (n & (n - 1)) {
		EMIT(c, 0x31, 0xd2); /* xor %edx,%edx */
		EMIT(c, 0x41, 0xbb); /* mov $n,%r11d */
		imm32(c, n);
		EMIT(c, 0x49, 0xf7, 0xf3); /* div %r11 */
		EMIT(c, 0x48, 0x85, 0xd2); /* test %rdx,%rdx */
	} else {
		EMIT(c, 0x48, 0xa9); /* test $(n - 1),%rax */
		imm32(c, n - 1);
	}
	JNE(c, skip);
}

static void compare_with(struct code *c, uint32_t n, struct label *skip)
{
	EMIT(c, 0x48, 0x3d); /* cmp $n,%rax */
	imm32(c, n);
	JAE(c, skip);
}

/* The word goes no further than by as many as there are threads. */
static void emit_first(struct code *c, uint32_t n, struct label *skip)
{
	EMIT(c, 0x49, 0x8b, 0x02); /* mov (%r10),%rax */
	compare_with(c, n, skip);
	emit_count(c);
	compare_with(c, n, skip);
}

#define SET_BACK (1ull << 36) /* ticks, some 20 s: no thread comes so late with its stamp */

/* rdx = full - now, which is above the burst: left out, unless no hit can have set the word so far. */
static void emit_empty(struct code *c, const struct kymo_pad_sample *sample, struct label *skip)
{
	movabs(c, RAX, sample->burst + sample->n + SET_BACK);
	EMIT(c, 0x48, 0x39, 0xc2);       /* cmp %rax,%rdx */
	branch(c, skip, "\x0f\x8e", 2);  /* jle */
	EMIT(c, 0x49, 0x8d, 0x04, 0x13); /* lea (%r11,%rdx),%rax: what the word is */
	EMIT(c, 0x31, 0xd2);             /* xor %edx,%edx */
}

#define EMPTY_SIZE 25

static void emit_rate(struct code *c, const struct kymo_pad_sample *sample, struct label *skip)
{
	uint64_t left = sample->n;

	EMIT(c, 0x0f, 0x31);                               /* rdtsc */
	EMIT(c, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0); /* shl $32,%rdx; or %rdx,%rax */
	EMIT(c, 0x49, 0x89, 0xc3);                         /* mov %rax,%r11: now */
	EMIT(c, 0x49, 0x8b, 0x02);                         /* mov (%r10),%rax: when it is full */
	EMIT(c, 0x48, 0x89, 0xc2);                         /* mov %rax,%rdx */
	EMIT(c, 0x4c, 0x29, 0xda);                         /* sub %r11,%rdx */
	EMIT(c, 0x48, 0x81, 0xfa);                         /* cmp $burst,%rdx */
	imm32(c, (uint32_t)sample->burst);
	EMIT(c, 0x7e, EMPTY_SIZE); /* jle 0f */
	emit_empty(c, sample, skip);
	EMIT(c, 0x48, 0x85, 0xd2);       /* 0: test %rdx,%rdx */
	EMIT(c, 0x79, 0x02, 0x31, 0xd2); /* jns 1f; xor %edx,%edx; 1: it has been full for a while */
	EMIT(c, 0x4c, 0x01, 0xda);       /* add %r11,%rdx */
	for (uint64_t part; left; left -= part) {
		part = left < KYMO_PAD_SAMPLE_MAX ? left : KYMO_PAD_SAMPLE_MAX;
		EMIT(c, 0x48, 0x81, 0xc2); /* add $part,%rdx */
		imm32(c, (uint32_t)part);
	}
	EMIT(c, 0xf0, 0x49, 0x0f, 0xb1, 0x12); /* lock cmpxchg %rdx,(%r10) */
	JNE(c, skip);
}

void x86_emit_sample(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_sample *sample,
		     struct label *skip)
{
	if (sample->kind == KYMO_PAD_SAMPLE_ALL)
		return;
	/* Where nothing is recorded nothing is counted, and the clock may be forbidden. */
	compare_byte(c, env->live, 0);
	JE(c, skip);
	movabs(c, R10, env->samples + sample->slot * sizeof(struct kymo_wire_sample));
	if (sample->kind == KYMO_PAD_SAMPLE_EVERY)
		emit_every(c, (uint32_t)sample->n, skip);
	else if (sample->kind == KYMO_PAD_SAMPLE_FIRST)
		emit_first(c, (uint32_t)sample->n, skip);
	else
		emit_rate(c, sample, skip);
}

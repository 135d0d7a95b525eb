/*
 * Turns the markers of marker_forms.c or marker_forms.cc on as libkymo-marker would, with one thread and no care, and
 * prints each that is passed:
 *
 *	NAME ARGUMENT...
 *
 * and at the end what forms_run() returned and how many arguments were evaluated. Usage: marker_by_hand [on | record |
 * slow]
 *
 *	on	through slots.call
 *	record	into a ring, which is printed at the end, and before what can't go there (x86-64)
 *	slow	through rings.slow alone (x86-64)
 */
#define _GNU_SOURCE
#define KYMO_NO_MARKERS
#include <elf.h>
#include <link.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "marker_forms.h"

#define MAX_NOTES 1000

static struct {
	const struct kymo_marker_note *note;
	unsigned int type;
} notes[MAX_NOTES];
static int n_notes;

static char *follow(const int32_t *field)
{
	const int32_t *at = field;

	__asm__("" : "+r"(at)); /* what is beyond the field is no business of the compiler's */
	return *field ? (char *)(uintptr_t)at + *field : NULL;
}
#define AT(note, field) follow(&(note)->field)

static int find_notes(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr), *end = at + segment->p_memsz;
		size_t align = segment->p_align == 8 ? 8 : 4;

		while (segment->p_type == PT_NOTE && at < end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *owner = at + sizeof(*note);
			const char *desc = at + ((sizeof(*note) + note->n_namesz + align - 1) & -align);

			if (note->n_namesz == 5 && !strcmp(owner, "kymo") && n_notes < MAX_NOTES) {
				notes[n_notes].note = (const void *)desc;
				notes[n_notes++].type = note->n_type;
			}
			at += ((size_t)(desc - at) + note->n_descsz + align - 1) & -align;
		}
	}
	return 0;
}

static const struct kymo_marker_note *note_of(const struct kymo_marker_slots *slots)
{
	for (int i = 0; i < n_notes; i++)
		if (notes[i].type == KYMO_MARKER_NOTE_LOCATION && AT(notes[i].note, target) == (const char *)slots)
			return notes[i].note;
	abort();
}

static void print_string(const char *string)
{
	if (string)
		printf(" \"%s\"", string);
	else
		printf(" NULL");
}

#if defined(__x86_64__) && defined(__LP64__)
#define HAS_RINGS 1

/* From one of the two below: all arguments 8 bytes each, or packed as in a record, strings with their NULs. */
static void print_marker(const struct kymo_marker_note *note, const char *at, int is_packed)
{
	printf("%s", AT(note, name));
	for (unsigned int types = note->types; types; types >>= 4) {
		unsigned int type = types & 15;
		int is_word = type == KYMO_MARKER_S32 || type == KYMO_MARKER_U32;
		uint64_t value = 0;
		double number;

		if (is_packed && type == KYMO_MARKER_STRING) {
			print_string(at);
			at += strlen(at) + 1;
			continue;
		}
		memcpy(&value, at, is_word && is_packed ? 4 : 8);
		memcpy(&number, &value, sizeof(number));
		at += is_word && is_packed ? 4 : 8;
		switch (type) {
		case KYMO_MARKER_S32:
			printf(" %d", (int)value);
			break;
		case KYMO_MARKER_U32:
			printf(" %u", (unsigned int)value);
			break;
		case KYMO_MARKER_S64:
			printf(" %lld", (long long)value);
			break;
		case KYMO_MARKER_U64:
			printf(" %llu", (unsigned long long)value);
			break;
		case KYMO_MARKER_F64:
			printf(" %g", number);
			break;
		case KYMO_MARKER_POINTER64:
			printf(" 0x%llx", (unsigned long long)value);
			break;
		case KYMO_MARKER_STRING:
			print_string((const char *)value);
			break;
		default:
			abort();
		}
	}
	printf("\n");
}

/* slots.call, and rings.slow: C functions get the frame's arguments, the slots, r10 and r11. What they may change they
 * do change. */
void by_hand_call(void);
void by_hand_slow(void);
#define STUB(name, function) \
	__asm__(".text\n" #name ":\n" \
		"push %rbp\n" \
		"mov %rsp, %rbp\n" \
		"push %rcx\n" \
		"push %rsi\n" \
		"push %rdi\n" \
		"push %r8\n" \
		"push %r9\n" \
		"sub $512, %rsp\n" \
		"and $-16, %rsp\n" \
		"fxsave (%rsp)\n" \
		"lea 16 + 32(%rbp), %rdi\n" \
		"mov %rdx, %rsi\n" \
		"mov %r10, %rdx\n" \
		"mov %r11, %rcx\n" \
		"call " #function "\n" \
		"fxrstor (%rsp)\n" \
		"lea -40(%rbp), %rsp\n" \
		"pop %r9\n" \
		"pop %r8\n" \
		"pop %rdi\n" \
		"pop %rsi\n" \
		"pop %rcx\n" \
		"pop %rbp\n" \
		"mov $0xbad1, %eax\n" \
		"mov $0xbad2, %edx\n" \
		"mov $0xbad3, %r10d\n" \
		"mov $0xbad4, %r11d\n" \
		"ret\n")
STUB(by_hand_call, by_hand_passed);
STUB(by_hand_slow, by_hand_slowly);

__attribute__((used, visibility("hidden"))) void by_hand_passed(const char *frame,
								const struct kymo_marker_slots *slots)
{
	print_marker(note_of(slots), frame, 0);
}

/* ---- rings: one is used, since the process stays on one CPU ---------------------------------- */

extern const ptrdiff_t __rseq_offset __attribute__((weak));

#define N_CPUS 1024
#define RECORDS_SIZE 65536

static char rings_memory[N_CPUS * 1024 + RECORDS_SIZE] __attribute__((aligned(64)));
static struct kymo_marker_rings rings = { .slow = by_hand_slow };
static uint64_t *position; /* of the ring's next record, relative to the ring */
static uint64_t printed;
static _Thread_local int thread_id;

static void print_ring(void)
{
	const char *ring = (const char *)(position - 1);

	while (printed < *position) {
		uint64_t header;
		int tid;
		const struct kymo_marker_note *note;

		memcpy(&header, ring + printed, 8);
		memcpy(&tid, ring + printed + 8, 4);
		note = notes[header & 0xfffff].note;
		if (!(header >> 20) || tid != thread_id)
			abort();
		print_marker(note, ring + printed + 12, 1);
		printed += 12;
		for (unsigned int types = note->types; types; types >>= 4)
			printed += (types & 15) == KYMO_MARKER_S32 || (types & 15) == KYMO_MARKER_U32 ? 4 : 8;
	}
}

__attribute__((used, visibility("hidden"))) void
by_hand_slowly(const char *frame, const struct kymo_marker_slots *slots, const char *payload, size_t size)
{
	const struct kymo_marker_note *note = note_of(slots);

	if (position) {
		if (!size) /* there is room for all of them */
			abort();
		print_ring();
	}
	print_marker(note, size ? payload : frame, size != 0);
}

static void make_rings(void)
{
	int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (!&__rseq_offset || cpu >= N_CPUS || sched_setaffinity(0, sizeof(set), &set))
		abort();
	thread_id = getpid();
	rings.first = (uint64_t)(uintptr_t)rings_memory;
	rings.n_cpus = N_CPUS;
	rings.rseq_offset = __rseq_offset;
	rings.tid_offset = (char *)&thread_id - (char *)__builtin_thread_pointer();
	position = (uint64_t *)(void *)(rings_memory + cpu * 1024) + 1;
	position[0] = printed = (uint64_t)(N_CPUS - cpu) * 1024;
	position[1] = position[0] + RECORDS_SIZE;
}
#else
static void passed(struct kymo_marker_slots *slots, const char *format, ...)
{
	const struct kymo_marker_note *note = note_of(slots);
	va_list list;

	if (!note->format || strcmp(format, AT(note, format)))
		abort();
	printf("%s", AT(note, name));
	va_start(list, format);
	for (unsigned int types = note->types; types; types >>= 4) {
		switch (types & 15) {
		case KYMO_MARKER_S32:
			printf(" %d", va_arg(list, int));
			break;
		case KYMO_MARKER_U32:
			printf(" %u", va_arg(list, unsigned int));
			break;
		case KYMO_MARKER_S64:
			printf(" %lld", va_arg(list, long long));
			break;
		case KYMO_MARKER_U64:
			printf(" %llu", va_arg(list, unsigned long long));
			break;
		case KYMO_MARKER_F64:
			printf(" %g", va_arg(list, double));
			break;
		case KYMO_MARKER_POINTER64:
		case KYMO_MARKER_POINTER32:
			printf(" 0x%llx", (unsigned long long)(uintptr_t)va_arg(list, void *));
			break;
		case KYMO_MARKER_STRING:
			print_string(va_arg(list, const char *));
			break;
		default:
			abort();
		}
	}
	va_end(list);
	printf("\n");
}
#define by_hand_call ((void (*)(void))passed)
#endif

static void jump(char *site, char *cold)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *begin = (char *)((uintptr_t)site & -page);
	size_t size = (size_t)(site + 5 - begin);
	int32_t distance = (int32_t)(cold - (site + 5));

	if (memcmp(site, "\x0f\x1f\x44\x00\x00", 5) || mprotect(begin, size, PROT_READ | PROT_WRITE | PROT_EXEC))
		abort();
	site[0] = (char)0xe9;
	memcpy(site + 1, &distance, sizeof(distance));
	if (mprotect(begin, size, PROT_READ | PROT_EXEC))
		abort();
}

static void turn_place_on(struct kymo_marker_slots *slots, unsigned int id, int with_rings)
{
#ifdef HAS_RINGS
	if (with_rings) {
		slots->rings = &rings;
		slots->event_id = id;
		return;
	}
#else
	(void)id;
	if (with_rings)
		abort();
#endif
	slots->call = by_hand_call;
}

static void turn_on(int with_rings)
{
	for (int i = 0; i < n_notes; i++) {
		const struct kymo_marker_note *note = notes[i].note;

		if (notes[i].type == KYMO_MARKER_NOTE_LOCATION)
			turn_place_on((struct kymo_marker_slots *)(void *)AT(note, target), (unsigned int)i,
				      with_rings);
		else if (note->code)
			jump(AT(note, code), AT(note, target));
		else
			((struct kymo_marker_gate *)(void *)AT(note, gate))->inside = 1;
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "off";

	dl_iterate_phdr(find_notes, NULL);
#ifdef HAS_RINGS
	if (!strcmp(how, "record"))
		make_rings();
#endif
	if (strcmp(how, "off"))
		turn_on(strcmp(how, "on"));
	unsigned int result = forms_run();
#ifdef HAS_RINGS
	if (position)
		print_ring();
#endif
	printf("result %u, %d arguments evaluated\n", result, forms_evaluated);
	return 0;
}

/*
 * Registers as debuggers name them: which there are, and where the kernel's register sets have them. Public header of
 * the room, beside arch.h. Pure.
 */
#ifndef KYMO_ARCH_REGISTERS_H
#define KYMO_ARCH_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kymo_register_set {
	KYMO_REGISTERS_GENERAL,  /* struct user_regs_struct */
	KYMO_REGISTERS_EXTENDED, /* NT_X86_XSTATE */
};

/* One register of a target description. */
struct kymo_register {
	char name[12];
	const char *type;    /* as gdb's target descriptions have it */
	const char *group;   /* or NULL */
	const char *feature; /* "org.gnu.gdb.i386.core" */
	enum kymo_register_set set;
	uint32_t offset;   /* in its set */
	uint8_t size;      /* bytes in the set */
	uint8_t shown;     /* bytes that debuggers see; more than `size`: zeros follow */
	uint8_t component; /* of the extended state: a bit's number in XSTATE_BV; 0, 1: the legacy area */
};

#define KYMO_REGISTERS_MAX 220
#define KYMO_XSTATE_MAX 16384

/* The registers that a thread with these components has (XCR0), in the order in which debuggers number them. Writes at
 * most KYMO_REGISTERS_MAX; how many. */
size_t kymo_registers_list(uint64_t components, struct kymo_register *ret);

/* The name of the architecture, and types that registers refer to, as XML of a target description by feature; "" where
 * there are none. */
const char *kymo_registers_architecture(void);
const char *kymo_registers_types(const char *feature);

/* XCR0 in an image of NT_X86_XSTATE; 0 where it is too short. */
uint64_t kymo_xstate_components(const uint8_t *image, size_t size);

/* Read or write one register of an extended image; the value has `shown` bytes. A component in its initial state reads
 * as that. False: it is not in the image. */
bool kymo_xstate_read(const struct kymo_register *reg, const uint8_t *image, size_t size, uint8_t *ret);
bool kymo_xstate_write(const struct kymo_register *reg, uint8_t *image, size_t size, const uint8_t *value);

/* Numbers of the registers that stop replies bring along: frame and stack pointer, program counter. */
extern const unsigned int kymo_registers_expedited[3];
#define KYMO_REGISTER_PC 16
#define KYMO_REGISTER_SP 7

#endif

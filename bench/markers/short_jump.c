/*
 * What kymo's marker would be with a short jump over three bytes in place of the NOP of five: nothing but that differs
 * while it is off.
 */
#include "loops.h"

#ifdef __clang__
#define COLD
#else
#define COLD __attribute__((cold))
#endif

LOOP void loop_short_jump(long calls)
{
	for (long i = 0; i < calls; i++) {
		TURN(i);
		__asm__ goto(".byte 0xeb, 0x03, 0x0f, 0x1f, 0x00" : : : "cc" : on);
		continue;
on:
		COLD;
		__asm__ volatile("" : : "r"((int)i), "r"(i) : "memory");
	}
}

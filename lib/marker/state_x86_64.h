/*
 * What call_x86_64.S reads. Private to the library.
 */
#ifndef KYMO_LIB_STATE_H
#define KYMO_LIB_STATE_H

#include <stddef.h>
#include <stdint.h>

enum {
	KYMO_LIB_FXSAVE,
	KYMO_LIB_XSAVE,
	KYMO_LIB_XSAVEC,
};

extern uint64_t kymo_lib_state_size; /* bytes of the area */
extern uint32_t kymo_lib_state_mask; /* the components */
extern uint32_t kymo_lib_state_how;

#endif

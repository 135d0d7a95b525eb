/* Ways to get an argument, written short: initializers of struct kymo_fetch. */
#ifndef KYMO_TESTS_ARCH_FETCHES_H
#define KYMO_TESTS_ARCH_FETCHES_H

#include "arch/fetch.h"

#define FETCH(kind_, type_, value_) \
	{ \
		.kind = (kind_), .type = (type_), .value = (value_), .base = -1, .index = -1 \
	}

/* The operand displacement(base,index,scale); -1 for no register. */
#define OPERAND(type_, displacement_, base_, index_, scale_) \
	{ \
		.kind = KYMO_FETCH_MEMORY, .type = (type_), .value = (displacement_), .base = (base_), \
		.index = (index_), .scale = (scale_) \
	}

/* A payload: the registers with its address and its size. */
#define PAYLOAD(address_, size_) \
	{ \
		.kind = KYMO_FETCH_PAYLOAD, .type = KYMO_TYPE_STRING, .value = (address_), .base = -1, \
		.index = (size_) \
	}

#endif

/* A jump for which a neighboring instruction makes room. */
#ifndef KYMO_ARCH_X86_64_EVICT_H
#define KYMO_ARCH_X86_64_EVICT_H

#include "arch/x86_64/site.h"

x86_tactic x86_try_successor, x86_try_neighbor;

#endif

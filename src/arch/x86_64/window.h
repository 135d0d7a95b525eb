/* A jump over whole instructions. */
#ifndef KYMO_ARCH_X86_64_WINDOW_H
#define KYMO_ARCH_X86_64_WINDOW_H

#include "arch/x86_64/site.h"

x86_tactic x86_try_jump, x86_try_group;

#endif

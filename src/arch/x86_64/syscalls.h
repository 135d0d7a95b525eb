/* System calls of a module. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_SYSCALLS_H
#define KYMO_ARCH_X86_64_SYSCALLS_H

#include <stdint.h>

struct kymo_entry_map;
struct kymo_module_code;

/* The number of the only call that the `syscall` at `vaddr` makes, or -1. */
int32_t x86_syscall_number(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t vaddr);

#endif

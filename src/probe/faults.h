/* Faults that a process handles itself: KYMO_FAULT_… of arch/arch.h. */
#ifndef KYMO_PROBE_FAULTS_H
#define KYMO_PROBE_FAULTS_H

#include <sys/types.h>

struct kymo_module_code;

/* Those that the program which `code` is part of handles from its start: Go's turns all into panics. */
unsigned int kymo_faults_of_code(const struct kymo_module_code *code);

/* Those for which process `pid` has a handler now (SigCgt); 0 for one that is gone. */
unsigned int kymo_handled_faults(pid_t pid);

#endif

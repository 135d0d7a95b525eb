/* Faults that a process handles itself: KYMO_FAULT_… of arch/arch.h. */
#ifndef KYMO_PROBE_FAULTS_H
#define KYMO_PROBE_FAULTS_H

#include <sys/types.h>

/* Those for which process `pid` has a handler now (SigCgt); 0 for one that is gone. */
unsigned int kymo_handled_faults(pid_t pid);

#endif

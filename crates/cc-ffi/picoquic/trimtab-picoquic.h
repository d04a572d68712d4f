/*
 * Trimtab's algorithms as a congestion algorithm of picoquic.
 *
 * Link trimtab-picoquic.c and libtrimtab-cc-steer.a. Then, before connections are made:
 *
 *   picoquic_set_default_congestion_algorithm_ex(quic, &trimtab_picoquic_algorithm, "bbr3");
 *
 * or for one connection: picoquic_set_congestion_algorithm_ex(cnx, …). The option string is an
 * algorithm as `trimtab cc list` has it, with a preset or knobs where needed: "copa:delta=0.1".
 * Without one it is "cubic". "mortise:MODEL" is Mortise with a QoE model of trimtab_cc_steer, and
 * "mortise" with "download". As for picoquic's own algorithms, the string must stay where it is
 * while connections use it.
 *
 * Each path has a state of 4.2 kB, allocated by alg_init and freed by alg_delete, and 1.2 kB more
 * under Mortise. No packet allocates. alg_observe gives trimtab_cc_phase and the pacing rate in bytes per second.
 */
#ifndef TRIMTAB_PICOQUIC_H
#define TRIMTAB_PICOQUIC_H

#include "picoquic.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Its name is "trimtab", for picoquic_register_congestion_control_algorithms. */
extern picoquic_congestion_algorithm_t const trimtab_picoquic_algorithm;

/* 0 where `options` names an algorithm that there is, with knobs in their range; else -1. alg_init
 * cannot fail: with a text that names none it logs a message and takes "cubic". */
int trimtab_picoquic_check(char const *options);

/* Changes algorithm or knobs of a live connection, on all its paths, without a new slow start: see
 * trimtab_cc_change. The connection must have trimtab_picoquic_algorithm. Gives 0, or -1 where it
 * has another or `options` names no algorithm; then nothing changes. */
int trimtab_picoquic_change(picoquic_cnx_t *cnx, char const *options);

/* Sets a live factor of the application on the paths that the connection has now: see
 * trimtab_cc_set_factor. Gives 0, or -1 where nothing steers or the name cannot be. */
int trimtab_picoquic_set_factor(picoquic_cnx_t *cnx, char const *name, double value);

#ifdef __cplusplus
}
#endif

#endif

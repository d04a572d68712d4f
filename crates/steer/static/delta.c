/* Prints the delta of a download's Copa after a minute under Mortise: see src/lib.rs. */
#include <stdio.h>

double trimtab_steer_delta(unsigned rounds);

int main(void) {
	printf("delta %.4f\n", trimtab_steer_delta(3000));
	return 0;
}

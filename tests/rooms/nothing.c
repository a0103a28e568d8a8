/*
 * nothing.c: what a room's library is linked with to see that it needs no others than it names.
 */
extern const int rooms_nothing;
const int rooms_nothing = 0;

/*
 * notify.h: telling a service manager how far the daemon is (the datagrams of systemd's
 * Type=notify).
 *
 * Threads: any.
 */
#ifndef KILN_SERVER_NOTIFY_H
#define KILN_SERVER_NOTIFY_H

/** Sends "READY=1" or the like to the socket that NOTIFY_SOCKET names; nothing where there is none.
 */
void notify_send(const char *state);

#endif

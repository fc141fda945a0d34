/** The test host's address on the link to the test internet. */
export const HOST_ADDRESS = '93.184.215.10';
/** The test internet's address on that link. */
export const WORLD_ADDRESS = '93.184.215.1';
/** An address in the test internet that accepts connections. */
export const PUBLIC_ADDRESS = '93.184.216.34';
/** The DNS server in the test internet. */
export const DNS_SERVER = '8.8.8.8';
/** UDP port at which the DNS server's machine echoes datagrams. */
export const ECHO_PORT = 4242;

/** The test host's address towards the test internet. */
export const HOST_ADDRESS = '93.184.215.10';
/** The test internet's own address on that link. */
export const WORLD_ADDRESS = '93.184.215.1';
/** An address of the test internet that answers everything. */
export const PUBLIC_ADDRESS = '93.184.216.34';
/** The test internet's DNS server. */
export const DNS_SERVER = '8.8.8.8';
/** Where the DNS server's machine echoes UDP. */
export const ECHO_PORT = 4242;

/** Environment variables that only the command line reads, besides those of the service. */
export const OWN_VARIABLES: readonly string[] = ['SVC_API_KEY'];

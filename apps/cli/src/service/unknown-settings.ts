import { unknownVariables } from '@svc/config';

/** Variables that only the command line reads, in addition to the settings of the service. */
const CLIENT_VARIABLES: readonly string[] = ['SVC_API_KEY'];

/** Names of `SVC_` variables in the environment that neither the service nor the command line reads. */
export function unknownSettings(): string[] {
  return unknownVariables(process.env, CLIENT_VARIABLES);
}

import { loadServiceConfig } from '@svc/config';
import { deriveControlPlaneKey, type Enrolment, mintEnrolmentToken } from '@svc/service-kit/tokens';
import { CliError } from '../../output/errors.ts';
import { knownClusterSecret } from '../start/generated-settings.ts';

/**
 * A token with which components enrol in the fleet of this machine.
 * @throws CliError `no_cluster_secret`
 */
export async function operatorToken(
  enrolment: Enrolment,
  lifetimeSeconds: number,
): Promise<string> {
  const secret = await knownClusterSecret(loadServiceConfig());
  if (secret === undefined) {
    throw new CliError(
      'no_cluster_secret',
      'this machine does not have the secret of the control planes',
      {
        next: 'run the command where a control plane runs, with its SVC_CLUSTER_SECRET or its SVC_DATA_DIR',
      },
    );
  }
  return mintEnrolmentToken(await deriveControlPlaneKey(secret), enrolment, lifetimeSeconds);
}

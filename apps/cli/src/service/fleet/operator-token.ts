import { loadServiceConfig } from '@svc/config';
import { deriveControlPlaneKey, type Enrolment, mintEnrolmentToken } from '@svc/service-kit/tokens';
import { CliError } from '../../output/errors.ts';
import { knownClusterSecrets } from '../start/cluster-secrets.ts';

/**
 * A token with which components enrol in the fleet of this machine.
 * @throws CliError `no_cluster_secret`
 */
export async function operatorToken(
  enrolment: Enrolment,
  lifetimeSeconds: number,
): Promise<string> {
  const secrets = await knownClusterSecrets(loadServiceConfig());
  if (secrets === undefined) {
    throw new CliError(
      'no_cluster_secret',
      'this machine does not have the secret of the control planes',
      {
        next: 'run the command where a control plane runs, with its SVC_CLUSTER_SECRET, SVC_CLUSTER_SECRET_FILE or SVC_DATA_DIR',
      },
    );
  }
  return mintEnrolmentToken(await deriveControlPlaneKey(secrets[0]), enrolment, lifetimeSeconds);
}

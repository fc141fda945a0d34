import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { CLUSTER_SECRET_LENGTH, type Config } from '@svc/config';
import { Secret } from '@svc/service-kit/secret';
import { CliError } from '../../output/errors.ts';
import { readIfAny, storedValue } from './stored-values.ts';

type Secrets = readonly [Secret, ...Secret[]];

/**
 * The cluster secrets of this machine, or undefined: that of the environment, or else one for each line of their file; then the
 * one that is only accepted.
 * @throws CliError `cluster_secret_unusable`
 */
export async function knownClusterSecrets(config: Config): Promise<Secrets | undefined> {
  const { clusterSecret, clusterSecretAccepted: accepted } = config;
  const [first, ...others] =
    clusterSecret === undefined ? await secretsIn(fileOf(config)) : [clusterSecret];
  if (first === undefined) return undefined;
  return [first, ...others, ...(accepted === undefined ? [] : [accepted])];
}

/**
 * The cluster secrets of this machine. In the data directory, one is generated if there is none. The caller holds the lock on
 * the directory.
 * @throws CliError `cluster_secret_unusable` for a configured file that is absent or empty
 */
export async function clusterSecrets(config: Config): Promise<Secrets> {
  if (!hasConfiguredSecret(config)) {
    await storedValue(fileOf(config), () => randomBytes(32).toString('base64url'));
  }
  return rereadClusterSecrets(config);
}

/** As they are now. @throws CliError `cluster_secret_unusable` */
export async function rereadClusterSecrets(config: Config): Promise<Secrets> {
  const known = await knownClusterSecrets(config);
  if (known === undefined) throw unusable(`there is none in ${fileOf(config)}`);
  return known;
}

/** Whether the operator provides cluster secrets. */
export function hasConfiguredSecret({ clusterSecret, clusterSecretFile }: Config): boolean {
  return clusterSecret !== undefined || clusterSecretFile !== undefined;
}

function fileOf({ clusterSecretFile, dataDir }: Config): string {
  return clusterSecretFile ?? join(dataDir, 'cluster-secret');
}

async function secretsIn(file: string): Promise<Secret[]> {
  const text = await readIfAny(file).catch((error: NodeJS.ErrnoException) => {
    throw unusable(error.message);
  });
  const lines = text.split('\n').map((line) => line.trim());
  const secrets = lines.filter((line) => line !== '');
  if (secrets.some((secret) => secret.length < CLUSTER_SECRET_LENGTH)) {
    throw unusable(`a line of ${file} has less than ${CLUSTER_SECRET_LENGTH} characters`);
  }
  return secrets.map((secret) => new Secret(secret));
}

function unusable(problem: string): CliError {
  return new CliError('cluster_secret_unusable', `the cluster secret cannot be used: ${problem}`, {
    next: `write one secret of at least ${CLUSTER_SECRET_LENGTH} characters on each line of the file; the first signs`,
  });
}

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import {
  type ObjectStore,
  openFsObjectStore,
  openS3ObjectStore,
  type S3Settings,
  SignedUrls,
} from '@svc/object-store';
import type { Registry } from '@svc/service-kit';
import { countObjectFailures } from './count-failures.ts';

/** The object store of the service. */
export interface Objects {
  readonly store: ObjectStore;
  /** Checks the presigned URLs that the control plane serves; undefined if S3 serves them. */
  readonly urls: SignedUrls | undefined;
}

export interface ObjectsOptions {
  readonly config: Config;
  /** Of the URLs of a store in the data directory, the same on every control plane: the first signs, each verifies. */
  readonly urlKeys: readonly [Uint8Array, ...Uint8Array[]];
  /** Public URL of the control plane. */
  readonly baseUrl: () => string;
  /** Counts the failures of the store. */
  readonly registry: Registry;
}

/** Opens the configured S3 bucket, or a store in the data directory. @throws ObjectStoreError */
export async function openObjects(options: ObjectsOptions): Promise<Objects> {
  const { store, urls } = await openStore(options);
  return { store: countObjectFailures(store, options.registry), urls };
}

async function openStore({
  config,
  urlKeys,
  baseUrl,
}: Omit<ObjectsOptions, 'registry'>): Promise<Objects> {
  const s3 = s3SettingsOf(config);
  if (s3 !== undefined) return { store: openS3ObjectStore(s3), urls: undefined };
  const urls = new SignedUrls(urlKeys, baseUrl);
  const store = await openFsObjectStore({ directory: join(config.dataDir, 'objects'), urls });
  return { store, urls };
}

/** The object store of the configured service, for a command of its operator. URLs that it issues are valid nowhere. @throws ObjectStoreError */
export async function openObjectStore(config: Config): Promise<ObjectStore> {
  const { store } = await openStore({ config, urlKeys: [randomBytes(32)], baseUrl: () => '' });
  return store;
}

/**
 * Whether an S3 bucket is configured, after reaching it.
 * @throws ObjectStoreError when it cannot be reached with the configured credentials
 */
export async function reachS3(config: Config, signal: AbortSignal): Promise<boolean> {
  const s3 = s3SettingsOf(config);
  if (s3 === undefined) return false;
  await using store = openS3ObjectStore(s3);
  await store.ping(signal);
  return true;
}

/** The settings of the S3 server, of which all are set, or none. */
function s3SettingsOf(config: Config): S3Settings | undefined {
  const { s3Endpoint, s3Region, s3Bucket, s3AccessKeyId, s3SecretAccessKey } = config;
  if (!s3Endpoint || !s3Region || !s3Bucket || !s3AccessKeyId || !s3SecretAccessKey) {
    return undefined;
  }
  return {
    endpoint: s3Endpoint,
    region: s3Region,
    bucket: s3Bucket,
    accessKeyId: s3AccessKeyId,
    secretAccessKey: s3SecretAccessKey,
  };
}

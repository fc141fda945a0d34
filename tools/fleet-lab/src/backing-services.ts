import { join } from 'node:path';
import { type ObjectStore, openS3ObjectStore } from '@svc/object-store';
import { startS3Server } from '@svc/s3-server';
import { Secret } from '@svc/service-kit';
import { startPostgresOn, startPostgresPair } from '@svc/store/testing';
import { HaProxy } from './haproxy.ts';
import type { LabMachine, LabNetwork } from './lab-network.ts';

const DATABASE_PORT = 5432;
const STORE_PORT = 9000;

/** PostgreSQL and an object store, each at an address of its own in a lab. */
export interface BackingServices {
  /** What control planes need to use them. */
  readonly settings: Readonly<Record<string, string>>;
  readonly database: LabMachine;
  readonly objectStore: LabMachine;
  /** Kills PostgreSQL as the loss of its machine does, promotes its standby, and lets the address lead there. */
  failOver(): Promise<void>;
  /** Access to the objects, past the network of the lab. */
  readonly objects: ObjectStore;
}

export interface BackingOptions {
  /** Whether PostgreSQL has a synchronous standby. */
  readonly hasStandby: boolean;
  /** Ends them. */
  readonly cleanUp: AsyncDisposableStack;
}

/** Starts them. */
export async function startBackingServices(
  network: LabNetwork,
  directory: string,
  { hasStandby, cleanUp }: BackingOptions,
): Promise<BackingServices> {
  // Of its own, because a failover adds to it later.
  const proxies = cleanUp.use(new AsyncDisposableStack());
  const database = await network.addMachine('db');
  const bind = `${database.address}:${DATABASE_PORT}`;
  const pair = hasStandby ? cleanUp.use(await startPostgresPair(database)) : undefined;
  const primary = pair?.primary ?? cleanUp.use(await startPostgresOn(database));

  const objectStore = await network.addMachine('s3');
  const s3 = await startS3Server();
  cleanUp.defer(() => s3.close());
  const { endpoint, region, bucket, accessKeyId, secretAccessKey } = s3.settings;
  const objects = cleanUp.use(
    openS3ObjectStore({ ...s3.settings, secretAccessKey: new Secret(secretAccessKey) }),
  );
  // The server listens on the loopback interface of this process, which the machine reaches through a file.
  const relay = `unix@${join(directory, 's3.sock')}`;
  const frontends = [{ bind: relay, servers: [new URL(endpoint).host] }];
  cleanUp.use(await HaProxy.start({ name: 's3-relay', directory, launcher: [], frontends }));
  const address = `${objectStore.address}:${STORE_PORT}`;
  await forward(objectStore, address, relay);

  return {
    settings: {
      SVC_DATABASE_URL: `postgres://${primary.username}@${bind}/postgres`,
      SVC_S3_ENDPOINT: `http://${address}`,
      SVC_S3_REGION: region,
      SVC_S3_BUCKET: bucket,
      SVC_S3_ACCESS_KEY_ID: accessKeyId,
      SVC_S3_SECRET_ACCESS_KEY: secretAccessKey,
    },
    database,
    objectStore,
    objects,
    failOver: async () => {
      if (pair === undefined) throw new Error('PostgreSQL has no standby');
      await pair.primary.kill();
      await pair.promote();
      await forward(database, bind, `unix@${pair.standby.socket}`);
    },
  };

  async function forward(machine: LabMachine, from: string, to: string): Promise<HaProxy> {
    const { name, launcher } = machine;
    const options = { name, directory, launcher, frontends: [{ bind: from, servers: [to] }] };
    return proxies.use(await HaProxy.start(options));
  }
}

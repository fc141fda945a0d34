import { createHash } from 'node:crypto';
import { S3Client } from '@aws-sdk/client-s3';
import type { Secret } from '@svc/service-kit/secret';

const CONNECT_MS = 5_000;
/** Of one request, up to the head of its response. */
const REQUEST_MS = 60_000;
/** Without a byte in either direction. */
const IDLE_MS = 60_000;
const ATTEMPTS = 4;
const MOST_CONNECTIONS = 64;

/** A bucket of an S3 server, and the credentials for it. */
export interface S3Settings {
  /** URL of the server, as in `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  readonly region: string;
  /** It exists. */
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
}

/** A client of the server, whose requests end in time and are repeated a few times. */
export function createS3Client(settings: S3Settings): S3Client {
  const agent = { keepAlive: true, maxSockets: MOST_CONNECTIONS };
  const client = new S3Client({
    endpoint: settings.endpoint,
    region: settings.region,
    credentials: {
      accessKeyId: settings.accessKeyId,
      secretAccessKey: settings.secretAccessKey.reveal(),
    },
    // Only Amazon gives every bucket a name of its own in the DNS.
    forcePathStyle: !new URL(settings.endpoint).hostname.endsWith('.amazonaws.com'),
    maxAttempts: ATTEMPTS,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: REQUEST_MS,
      throwOnRequestTimeout: true,
      socketTimeout: IDLE_MS,
      httpAgent: agent,
      httpsAgent: agent,
    },
    // Other servers than Amazon's refuse the checksums that the SDK adds by default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  sendContentMd5(client);
  return client;
}

/** Servers that do not know the newer checksums demand a Content-MD5 in the deletion of several objects. */
function sendContentMd5(client: S3Client): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      if (context.commandName === 'DeleteObjectsCommand') setContentMd5(args.request);
      return next(args);
    },
    { step: 'build', priority: 'low', name: 'contentMd5' },
  );
}

function setContentMd5(request: unknown): void {
  const { headers, body } = request as { headers: Record<string, string>; body: string };
  for (const name of Object.keys(headers)) {
    if (/^x-amz-(checksum-|sdk-checksum-)/i.test(name)) delete headers[name];
  }
  headers['content-md5'] = createHash('md5').update(body).digest('base64');
}

import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { S3ServerSettings } from './settings.ts';

/** Creates the bucket of a new server. */
export async function createBucket(
  { endpoint, region, bucket, accessKeyId, secretAccessKey }: S3ServerSettings,
  abortSignal: AbortSignal,
): Promise<void> {
  const client = new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
  });
  try {
    await client.send(new CreateBucketCommand({ Bucket: bucket }), { abortSignal });
  } finally {
    client.destroy();
  }
}

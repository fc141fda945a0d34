import { LocatedBlobs, LocatedImage, type LocateImageRequest } from '@svc/contract';
import { answerOf, type ControlPlaneTransport } from './control-plane-transport.ts';

const DEADLINE_MS = 15_000;

const imageAnswer = answerOf<LocatedImage>(LocatedImage);
const blobsAnswer = answerOf<LocatedBlobs>(LocatedBlobs);

/** The control plane's knowledge of VM images in the object store. Each call has a time limit; none is retried here. */
export class ImageApi {
  readonly #transport: Pick<ControlPlaneTransport, 'json'>;

  constructor(transport: Pick<ControlPlaneTransport, 'json'>) {
    this.#transport = transport;
  }

  /** The newest manifest of an image, if the store has one. */
  async locate(image: LocateImageRequest, signal: AbortSignal): Promise<LocatedImage['manifest']> {
    const call = { ...post('/images/locate', image), signal };
    return (await this.#transport.json(call, imageAnswer)).manifest;
  }

  /** Where to download a blob of an image. Undefined if the store does not have it. */
  async locateBlob(sha256: string, signal: AbortSignal): Promise<string | undefined> {
    const call = { ...post('/images/downloads', { blobs: [sha256] }), signal };
    const { blobs } = await this.#transport.json(call, blobsAnswer);
    return blobs.find((blob) => blob.sha256 === sha256)?.url;
  }
}

function post(path: string, json: unknown) {
  return { method: 'POST', path, json, deadlineMs: DEADLINE_MS } as const;
}

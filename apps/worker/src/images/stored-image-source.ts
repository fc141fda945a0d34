import {
  BlobGoneError,
  type ImageKey,
  ImageRefusedError,
  type ImageSource,
  type ManifestLocation,
} from '@svc/microvm';
import { createTokenMinter } from '@svc/service-kit';
import { ControlPlaneTransport } from '../control-plane/control-plane-transport.ts';
import { ImageApi } from '../control-plane/image-api.ts';
import {
  ObjectTooLargeError,
  ObjectTransfer,
  ObjectTransferError,
} from '../control-plane/object-transfer.ts';
import type { WorkerOptions } from '../options.ts';

export type StoredImageSourceOptions = Pick<WorkerOptions, 'controlPlane' | 'identity'>;

/** The images in the fleet's object store. The control plane says where they are; the worker has no credentials for the store. */
export class StoredImageSource implements ImageSource, AsyncDisposable {
  readonly #transport: ControlPlaneTransport;
  readonly #api: ImageApi;
  readonly #transfer: ObjectTransfer;

  constructor({ controlPlane: { url, ca }, identity }: StoredImageSourceOptions) {
    const mint = createTokenMinter(identity.key, identity.id);
    this.#transport = new ControlPlaneTransport({ url, ca, mint });
    this.#api = new ImageApi(this.#transport);
    this.#transfer = new ObjectTransfer({ url, ca });
  }

  locate(image: ImageKey, signal: AbortSignal): Promise<ManifestLocation | undefined> {
    return this.#api.locate(image, signal);
  }

  async blob(sha256: string, size: number, signal: AbortSignal): Promise<Buffer> {
    const url = await this.#api.locateBlob(sha256, signal);
    if (url === undefined) throw new BlobGoneError('the store no longer has a blob of the image');
    try {
      return await this.#transfer.get(url, size, signal);
    } catch (error) {
      if (error instanceof ObjectTransferError && error.status === 404) {
        throw new BlobGoneError('the store has lost a blob of the image', { cause: error });
      }
      if (error instanceof ObjectTooLargeError) {
        const message = `the blob ${sha256} is larger than the manifest says`;
        throw new ImageRefusedError('damaged', message, { cause: error });
      }
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#transport.close(), this.#transfer.close()]);
  }
}

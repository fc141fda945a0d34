import type { ImageStoreOptions } from '@svc/microvm';
import { untilAborted } from '@svc/service-kit/concurrency';
import type { ComponentIdentity } from '@svc/service-kit/tokens';
import { VERSION } from '../../version.ts';
import type { ComponentContext } from './component.ts';
import type { ControlPlaneAddress } from './runtime-host.ts';

/** The object store as a source of images. */
export interface OpenImageStore extends AsyncDisposable {
  optionsFor(template: string): { readonly store: ImageStoreOptions };
}

type StoreContext = Pick<ComponentContext, 'config' | 'logger' | 'signal'>;

/** Opens the source of the images that this machine gets from the object store. Undefined if it builds them. */
export async function openImageStore(
  { config, logger, signal }: StoreContext,
  identity: ComponentIdentity,
  address: Promise<ControlPlaneAddress>,
): Promise<OpenImageStore | undefined> {
  const { imageSource, imageTrustedKeys: trustedKeys, imageNotBefore: notBefore } = config;
  if (imageSource === 'build') return undefined;
  const [{ StoredImageSource }, controlPlane] = await Promise.all([
    import('@svc/worker'),
    untilAborted(address, signal),
  ]);
  const source = new StoredImageSource({ controlPlane, identity });
  const options = {
    ...{ source, trustedKeys, notBefore, version: VERSION },
    mayBuild: imageSource === 'store-or-build',
  };
  return {
    optionsFor: (template) => ({
      store: { ...options, onOutcome: (line) => logger.info({ template }, line) },
    }),
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  };
}

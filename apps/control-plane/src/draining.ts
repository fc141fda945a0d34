import { INTERNAL_PREFIX, ServiceError } from '@svc/contract';

/** Keeps new public requests out while the service shuts down. Workers still report the end of their sandboxes. */
export class Draining {
  #isDraining = false;

  begin(): void {
    this.#isDraining = true;
  }

  /** @throws ServiceError `shutting_down` for a public URL once draining has begun */
  check(url: string): void {
    if (this.#isDraining && !url.startsWith(INTERNAL_PREFIX)) {
      throw new ServiceError('shutting_down');
    }
  }
}

/** An answer of the API. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: object;
}

/**
 * Answers that are stored under idempotency keys. As at Stripe, a repeated key gets the first answer, whatever it was,
 * and a key with other parameters is an error. https://docs.stripe.com/api/idempotent_requests
 */
export class IdempotentAnswers {
  readonly #stored = new Map<string, { readonly parameters: string; readonly answer: ApiAnswer }>();

  answer(key: string | undefined, parameters: string, make: () => ApiAnswer): ApiAnswer {
    const stored = key === undefined ? undefined : this.#stored.get(key);
    if (stored === undefined) {
      const answer = make();
      if (key !== undefined) this.#stored.set(key, { parameters, answer });
      return answer;
    }
    if (stored.parameters === parameters) return stored.answer;
    return {
      status: 400,
      body: { error: { type: 'idempotency_error', message: 'the key was used otherwise' } },
    };
  }
}

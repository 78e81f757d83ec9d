// Requests to the server that the page came from. Addresses are relative: the page may lie below a prefix.

import { askForKey } from './key';

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

const storedKey = 'strata.key';
let refused = false; // the user closed the question for a key; ask again only when they act

export async function request(path: string, init: RequestInit = {}, asked = true): Promise<Response> {
  if (asked) refused = false;
  for (let wrong = false; ; wrong = true) {
    const key = sessionStorage.getItem(storedKey);
    const headers = new Headers(init.headers);
    if (key) headers.set('Authorization', `Bearer ${key}`);
    const response = await fetch(path, { ...init, headers, cache: 'no-store', credentials: 'same-origin' });
    if (response.status !== 401) return response;
    if (sessionStorage.getItem(storedKey) !== key) continue; // another request has asked meanwhile
    const given = refused ? null : await askForKey(wrong || key !== null);
    if (given === null) {
      refused = true;
      throw new ApiError('This server needs an API key.', 401);
    }
    sessionStorage.setItem(storedKey, given);
  }
}

// Throws what the server says about itself when it refuses.
export async function requestOk(path: string, init: RequestInit = {}, asked = true): Promise<Response> {
  const response = await request(path, init, asked);
  if (response.ok) return response;
  throw new ApiError(errorText(await response.text(), response.status), response.status);
}

export async function getJson(path: string, signal?: AbortSignal): Promise<unknown> {
  const response = await requestOk(path, signal ? { signal } : {}, false);
  return response.json();
}

function errorText(body: string, status: number): string {
  try {
    const message: unknown = JSON.parse(body)?.error?.message;
    if (typeof message === 'string' && message !== '') return message;
  } catch {
    // no JSON: a proxy answered
  }
  return `The server answered ${status}.`;
}

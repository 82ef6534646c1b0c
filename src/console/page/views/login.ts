import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { logIn } from '../api.ts';
import { html } from '../html.ts';

export function Login(): VNode {
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError(await logIn(String(fields.get('email')), String(fields.get('password'))));
    setBusy(false);
  };
  return html`<main class="login">
    <h1>Fleet</h1>
    <form onSubmit=${submit}>
      <label>E-mail <input name="email" type="email" autocomplete="username" required autofocus /></label>
      <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
      <p class="error" role="alert">${error}</p>
      <button disabled=${isBusy}>Log in</button>
    </form>
    <p>No password yet? Whoever runs the service sets one with <code>fleet account:update --email … --password …</code></p>
  </main>`;
}

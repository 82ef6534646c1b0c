import { render } from 'preact';
import { html } from './html.ts';
import { Shell } from './views/shell.ts';

const place = document.getElementById('console');
if (place !== null) render(html`<${Shell} />`, place);

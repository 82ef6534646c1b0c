// Shows the description with the viewer. Keys given to it stay in the memory of this page.
const page = document.getElementById('docs');
const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');

// The style sheet of the viewer has its dark colours under this class.
function followColorScheme() {
  document.documentElement.classList.toggle('dark-mode', prefersDark.matches);
}

followColorScheme();
prefersDark.addEventListener('change', followColorScheme);

window.SwaggerUIBundle({
  url: page.dataset.description,
  domNode: page,
  layout: 'BaseLayout',
  presets: [window.SwaggerUIBundle.presets.apis],
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
  // Of some other host, which would be told the address of this page.
  validatorUrl: null,
});

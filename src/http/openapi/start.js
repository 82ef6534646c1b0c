// Shows the description with Swagger UI. A key that is entered stays in the memory of this page.
const page = document.getElementById('docs');
const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');

// The style sheet of Swagger UI has its dark colours under this class.
function followColorScheme() {
  document.documentElement.classList.toggle('dark-mode', prefersDark.matches);
}

followColorScheme();
prefersDark.addEventListener('change', followColorScheme);

// An error takes one line until it is opened. Every operation has about ten, most of them the same for all.
const collapsedErrors = {
  wrapComponents: {
    response: (Response, { React }) => {
      const { createElement: h, useState } = React;
      const ErrorRow = (props) => {
        const [isOpen, setOpen] = useState(false);
        const whole =
          isOpen && h('table', { className: 'responses-table' }, h('tbody', null, h(Response, props)));
        return h(
          'tr',
          { className: 'response error-response', 'data-code': props.code },
          h('td', { className: 'response-col_status' }, props.code),
          h(
            'td',
            { className: 'response-col_description' },
            h(
              'details',
              { onToggle: (event) => setOpen(event.currentTarget.open) },
              h('summary', null, summaryOf(props.response)),
              whole,
            ),
          ),
        );
      };
      return (props) => h(isError(props.code) ? ErrorRow : Response, props);
    },
  },
};

function isError(code) {
  return code === 'default' || Number(code) >= 400;
}

// The codes that a description lists, or all of a short description.
function summaryOf(response) {
  const description = response.get('description') ?? '';
  const codes = Array.from(description.matchAll(/^- `([A-Z_]+)`/gm), ([, code]) => code);
  return codes.length > 0 ? codes.join(', ') : description.replaceAll('`', '');
}

// The dialog opens with the cursor in the field of the key. Each field asks for it, and the last one would win.
const keyFirst = {
  wrapComponents: {
    authorizationPopup:
      (Popup, { React }) =>
      (props) => {
        React.useEffect(() => document.querySelector('#docs .modal-ux input')?.focus(), []);
        return React.createElement(Popup, props);
      },
  },
};

// There is one server: the one that serves this page.
const noServerChoice = { wrapComponents: { ServersContainer: () => () => null } };

window.SwaggerUIBundle({
  url: page.dataset.description,
  domNode: page,
  layout: 'BaseLayout',
  presets: [window.SwaggerUIBundle.presets.apis],
  plugins: [collapsedErrors, keyFirst, noServerChoice],
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
  // It belongs to another host, which would learn the address of this page.
  validatorUrl: null,
});

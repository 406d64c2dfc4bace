import { render } from "preact";

render(<main id="main">Sign in</main>, document.getElementById("page") as HTMLElement);

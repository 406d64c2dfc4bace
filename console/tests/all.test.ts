import "./browser";
import "./backend";
import "./format";
import "./pages";
import "./route";
import "./rows";
import "./session";
import "./trail";
